"""Numba functions: arrays in, arrays out. They know nothing of the rest of the package."""
