"""Metrics of implicitness scores: accuracy, ranking, detection, diversity, spaces, surface baselines."""
