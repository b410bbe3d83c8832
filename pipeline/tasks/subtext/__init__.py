"""CSD: train and apply the subtext recogniser, recover what comments mean."""
