"""Fault scenes inside frameworks and vendor libraries."""
