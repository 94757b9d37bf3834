"""Tools for threads and forks: locks, properties computed once, and work without the garbage collector."""
