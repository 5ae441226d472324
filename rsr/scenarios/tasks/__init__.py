"""Tasks: what a policy sees, does and is paid for, in Python or said in YAML."""
