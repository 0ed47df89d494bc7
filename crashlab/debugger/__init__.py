"""cuda-gdb as an optional witness: a confined batch session and a transcript parser."""
