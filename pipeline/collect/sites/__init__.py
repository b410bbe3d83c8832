"""The five sites: one adapter a site, and what all of them return."""
