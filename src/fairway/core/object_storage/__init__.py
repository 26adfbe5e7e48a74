"""What is too large for a row: names of objects, references to them, quotas of uploads.

Here: values and decisions about objects, and the marker that ties a storage to its database.
Not here: reading and writing objects (`store/object_storage/`, `services/object_storage/`).
"""
