"""The catalogue of known failures and the matcher that argues for and against each."""
