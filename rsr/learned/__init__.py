"""Simulators that are learnt: `clash` for collisions, `gnn` for contact between free bodies."""
