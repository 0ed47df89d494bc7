"""Reasoning over read facts: who faulted, at which address, whose code it is, how sure."""
