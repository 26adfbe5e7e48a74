"""Object storage: a bucket (S3, GCS, Azure) or a folder that survives a power cut.

Here: put, get, list and delete by name.
Not here: what is stored and when (`services/object_storage/`); names (`core/object_storage/`).
"""
