"""What threads and forks need: locks, properties that are computed once, and work without the garbage collector."""
