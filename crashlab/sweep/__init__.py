"""Turn one lever at a time, count exactly, and say what the counts allow."""
