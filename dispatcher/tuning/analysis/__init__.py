"""What the notebooks ask: descriptions, thresholds, messages, plots."""
