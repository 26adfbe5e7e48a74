"""Large payloads, large results, uploads and checkpoints: objects and their rows.

Here: moving them to and from object storage, tying it to the database, removing leftovers.
Not here: the storage itself (`store/object_storage/`); names and quotas (`core/object_storage/`).
"""
