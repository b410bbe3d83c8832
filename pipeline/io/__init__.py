"""Files in and out: rows of csv, jsonl, xlsx, Parquet and SQLite, lines, spreadsheet cells, visible characters."""
