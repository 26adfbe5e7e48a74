"""What the API says of itself: `/openapi.json`, `/docs`, a page for each problem.

Here: the document assembled, schemas in words, curl examples, a little HTML.
Not here: what is said of each endpoint, which stands above its handler (`routes.py` has them all).
"""
