"""Article commenting: the corpus, commenters, overlap metrics, grades by people, the scorer and the page."""
