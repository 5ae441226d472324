"""Search methods, a file each, and the steps that they share."""
