"""Silent garbage: exact questions to one or two servers, and what the answers say about which one talks sense."""
