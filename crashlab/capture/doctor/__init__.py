"""Is this machine ready to catch a fault? Each check says what it found, why it matters, and what mends it."""
