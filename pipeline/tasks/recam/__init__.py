"""ReCAM: abstractness, target words, wrong options, readers, ratings by people and the page."""
