"""One way to measure: contestants, interleaved rounds, verified answers, results, charts."""
