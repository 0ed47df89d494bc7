"""Text evidence: driver progress log, kernel log, serving logs, sanitizer output."""
