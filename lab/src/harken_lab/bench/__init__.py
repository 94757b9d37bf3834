"""The benchmarks of `harken bench`: what they time, their results and their targets."""
