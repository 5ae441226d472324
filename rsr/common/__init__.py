"""What every room uses: errors, files written whole, data from outside, progress, randomness, rotations, spread jobs.

Imports nothing else of `rsr`.
"""
