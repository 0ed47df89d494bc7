"""Acceptance of `crashlab run` and `crashlab doctor` on a machine with a GPU."""
