"""Checks of a fit: gradients, clock offsets, and later drift of the robot."""
