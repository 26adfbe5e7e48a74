"""From measurements to a page: JSON, plots, one HTML file."""
