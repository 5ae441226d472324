"""Channels: what is observed and sent, sensors and their errors, and the states that recordings show."""
