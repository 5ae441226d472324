"""Motion: commands, where they lead, and the limits that everything sent obeys."""
