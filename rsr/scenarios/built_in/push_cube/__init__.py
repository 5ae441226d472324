"""A 6-DoF arm pushes a cube to a random target (the paper's first experiment)."""
