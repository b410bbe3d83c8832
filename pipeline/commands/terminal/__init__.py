"""What commands share: the terminal, files, options, and how failures are reported."""
