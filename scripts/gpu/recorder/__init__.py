"""Records the corpus of GPU core dumps: builds the fault programs, runs them, keeps what they leave."""
