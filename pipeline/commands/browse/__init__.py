"""`undertone browse` and `undertone export site`."""
