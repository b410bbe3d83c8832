"""Training for CSD: the subtext recogniser and the models that recover what a comment means."""
