"""Examples for ReCAM: cloze items, from target words to options."""
