"""The daily chain: collect, tokenize, score, report, and what keeps it whole."""
