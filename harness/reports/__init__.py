"""Reports as data: their format, baselines, the gate, and comparisons."""
