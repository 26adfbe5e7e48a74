"""Payloads looked at before anything is written: weight, schema, large texts.

Here: what a body costs to decode, and whether it is what its job type wants.
Not here: reading a body off the wire (`http/`); storing a large one (`services/object_storage/`).
"""
