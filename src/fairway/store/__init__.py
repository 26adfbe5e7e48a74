"""Every SQL statement. Plain async functions, connection first, core values out.

Here: a module for each file of `queries/`; connections, schema, embedded server in packages.
Not here: decisions (`core/`); when and how often a statement is run (`services/`).
"""
