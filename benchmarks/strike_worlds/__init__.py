"""Simulated realities of struck blocks whose laws stand nowhere in the product: only benchmarks and tests know them.

ground       a block on a few feet, on a table whose friction differs from place to place
patch        a pad on the nose: pressure over a patch, relaxation, bristles that stick and slip
flexible     a tip on springs, and a contact that stays dented: several touches, an arm that gives way sideways
contacts     flat pads, corners, walls, two free bodies: pressure over whole sides, Hunt and Crossley, Stribeck
stand_ins    patch and flexible as realities that record strikes; equal seeds, equal recordings
disturbed    what goes wrong in recordings: normals and points that err, glitches

Their ranges were written down before any method was judged on them, from what the parts are, and none was changed
afterwards; those of `contacts` were corrected once on its development seeds, since bodies sank into one another. Seeds
of `DEVELOPMENT` may be looked at while methods are written, those of `JUDGED` only by `clash.py`.
"""
