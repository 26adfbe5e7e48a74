"""What the API says of itself: `/openapi.json`, `/docs`, a page for each problem.

Here: the document assembled, schemas in words, curl examples, a little HTML.
Not here: the table of operations (`reference/`).
"""
