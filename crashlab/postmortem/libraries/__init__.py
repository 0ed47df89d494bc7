"""Whose kernel it is, as data: one TOML file a library, and the table that is generated from them.

Every key of a file is explained in :mod:`crashlab.postmortem.libraries.load`. After a change run
``python scripts/gen_library_rules.py``; a test fails while the table is out of date.
"""
