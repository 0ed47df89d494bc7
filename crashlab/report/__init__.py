"""The report: built once, rendered many ways."""
