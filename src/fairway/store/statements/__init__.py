"""How the texts of statements are made from what stands in `queries/`.

Here: parts that several statements share, one statement for each of many tables, other engines.
Not here: loading and binding (`store/sql.py`); what any statement means (the module of its file).
"""
