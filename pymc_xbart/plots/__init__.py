"""Figures of numbers made below (floor 3: matplotlib and ArviZ)."""
