"""Models: MJCF, URDF and Menagerie's robots, additions to them, guarded where they come from outside."""
