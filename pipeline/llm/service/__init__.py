"""One request to a service: limits, HTTP, and what its answer says."""
