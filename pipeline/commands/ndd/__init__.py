"""Commands about semantic distance and text compression."""
