"""What becomes of an answer: compared with the oracle's, counted as a refusal, looked up among the known mistakes."""
