"""Stands in torch's place where a worker is to have none."""

raise ImportError("a task of the queue `default` imports torch; it belongs to the queue and the pool `gpu`")
