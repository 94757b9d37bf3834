"""The laboratory of Harken: the papers' algorithms and plans, workloads, benchmarks, experiments, and the demo."""
