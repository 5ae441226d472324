"""Between iterations: approval, arrivals, deployment, and whether the robot has changed."""
