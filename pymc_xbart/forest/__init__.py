"""What a forest needs beside its kernels (floor 1: + SciPy; tables without their libraries)."""
