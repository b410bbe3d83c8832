"""NDD: masked language models, compression systems, distances, grades by people and the page."""
