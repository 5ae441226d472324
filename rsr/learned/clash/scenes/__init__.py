"""Scenes of the user's own as the base: their simulated impacts, a residual on them, and a hybrid simulator."""
