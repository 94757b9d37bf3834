"""The laboratory's commands of `harken`, a file each."""
