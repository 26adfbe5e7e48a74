"""What bench and lab measure with: a platform of their own, load, and how figures are computed.

Here: the programs of a measured platform, closed and open loop, quantiles, processor time.
Not here: what is asked and what it means (`bench/`, `lab/`). Servers and workers never load it.
"""
