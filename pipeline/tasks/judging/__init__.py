"""A judge, a language model or people, rates texts: which questions in which round, and what the answers come to."""
