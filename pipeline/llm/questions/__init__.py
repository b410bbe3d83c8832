"""Questions to a language model: messages of a row, and the value that an answer gives."""
