"""Hidden laws and numbers of the stand-ins for struck blocks. Only `rsr.realities.strikes` and tests may read it.

None of it is MuJoCo's contact law, and no surrogate may use it. The ranges in `truth.py` were frozen before any method
was tuned, on the tuning seeds, with MuJoCo and a grid search predicting about as many strikes as the CLASH paper
reports for real blocks (0.5 to 0.65). MuJoCo's level here is a calibration; how methods compare is a result.
"""
