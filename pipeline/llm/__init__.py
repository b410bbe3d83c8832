"""Language models: prompts as files, `messages(row)` and `parse(text, row)` as pure functions, answers kept raw."""
