"""The stages of the Real-Sim-Real loop, and the table that declares them."""
