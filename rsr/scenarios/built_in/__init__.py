"""The built-in scenarios, each a folder of the form that a user writes."""
