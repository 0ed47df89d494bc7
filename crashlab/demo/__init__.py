"""A simulated server that speaks what vLLM speaks, and recorded crashes for it to die of."""
