"""`python -m harken` is the program `harken`."""

from harken.cli import main

main()
