"""Kernels of the papers' algorithms. The default engine needs none of them."""
