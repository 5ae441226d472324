"""A 6-DoF arm pushes a T-shaped block to a target position and orientation (the paper's second experiment)."""
