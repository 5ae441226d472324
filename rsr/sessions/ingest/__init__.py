"""From a lab's recording, in whatever format, to a session on the scenario's channels."""
