"""Load a server until it breaks, and see it when it does: client, shapes, metrics, progress, garbage."""
