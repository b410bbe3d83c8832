"""The ledger: SQL tables of what was asked, answered and paid, and by which process."""
