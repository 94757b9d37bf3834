"""Measuring: workloads, benchmarks, the papers' experiments, and the demo."""
