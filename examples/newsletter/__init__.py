"""A newsletter, with its jobs: the project that docs/CELERY.md shows side by side with Celery's."""
