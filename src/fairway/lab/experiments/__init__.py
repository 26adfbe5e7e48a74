"""One file for each question the lab asks."""
