"""What the lab computes: pure functions of times and counts, no clock, no I/O."""
