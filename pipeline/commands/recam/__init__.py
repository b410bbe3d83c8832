"""Commands about cloze questions on abstract words."""
