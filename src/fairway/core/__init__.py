"""The law: pure values and decisions. No clock, no chance, no I/O; `now` is always an argument."""
