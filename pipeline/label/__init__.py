"""Labelling: what is asked of people, how three labels and a fourth become one, and how labels come and go."""
