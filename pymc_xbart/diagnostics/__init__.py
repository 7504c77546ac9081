"""What forests say, and how sure of it they are (floor 2: xarray and arviz-stats; no PyMC)."""
