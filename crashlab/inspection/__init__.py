"""Views into a dump: each one a table of typed values, rendered by the command line."""
