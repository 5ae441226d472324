"""Flows: the loop as the paper writes it. They only wire tasks together; no arithmetic, no files."""
