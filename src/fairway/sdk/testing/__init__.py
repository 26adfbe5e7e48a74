"""Jobs under test: modes without a network, assertions, single runs, a clock to turn by hand."""
