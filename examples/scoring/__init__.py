"""A talent marketplace's back end: hand in an application, have it scored, see the board."""
