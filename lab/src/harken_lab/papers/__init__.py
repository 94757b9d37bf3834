"""The papers' algorithms, one a file. They index rows of labels."""
