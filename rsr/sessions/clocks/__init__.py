"""Offsets and drift between the clocks of a recording, and signals put onto another time grid."""
