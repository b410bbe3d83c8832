"""What every task records: runs and dropped rows, models, the texts of a day. Every other family may import it."""
