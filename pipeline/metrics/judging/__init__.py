"""Numbers from a judge's answers: values of comparisons, which pairs to ask about next, and whether to believe it."""
