"""How one measure of a text stands to another: maps, curves, raters and corrected means."""
