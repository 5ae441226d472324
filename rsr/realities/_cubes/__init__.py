"""Hidden physics of the stand-in for two pushed cubes. Only `rsr.realities.cubes` and tests may read it.

Its steps are MuJoCo's, with what the scenario `two_cubes` cannot say: another time step, stiffer contacts between the
cubes than with the table, friction that depends on speed and on direction, a table that is not quite level, cubes of
slightly other mass with their centre of mass elsewhere. The ranges in `truth.py` were written down before anything was
fitted.
"""
