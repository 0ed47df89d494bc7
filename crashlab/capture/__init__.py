"""Catch the fault: environment, supervision, evidence. The rooms to the left read; this one watches."""
