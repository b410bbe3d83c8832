"""Training of ImpScore: its pairs as row numbers, embeddings, the fit and its evaluation."""
