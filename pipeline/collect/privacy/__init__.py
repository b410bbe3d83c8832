"""Anonymising: private particulars in a text become typed tokens."""
