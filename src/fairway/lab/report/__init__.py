"""From measurements to a page: JSON, plots, one HTML file.

Here: content, figures, the stamp of a run.
Not here: deciding what a number means (`experiments/`).
"""
