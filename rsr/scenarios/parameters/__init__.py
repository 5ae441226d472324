"""Parameters: their space, and which numbers of a model each of them writes."""
