"""Models: the torch code. Importing a module here imports torch, so it is done inside tasks and commands."""
