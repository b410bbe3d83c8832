"""Calibration as a task: values of two measures from the tables or a file, and their comparison."""
