"""Measurements of the engine on this machine, as ratios within one run."""
