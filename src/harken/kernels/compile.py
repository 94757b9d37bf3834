"""How kernels are compiled: the flags stand here, once."""

from __future__ import annotations

import numba

kernel = numba.njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)
"""To machine code at the first call, kept on disk; other threads run meanwhile."""
