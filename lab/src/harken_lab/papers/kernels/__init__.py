"""Kernels of the papers' algorithms. The default engine uses none of them."""
