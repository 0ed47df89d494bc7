"""The run directory: raw evidence, written once and never changed; everything else is computed from it."""
