"""Baselines of CLASH: all other methods that predict strikes from a few recorded ones, and a control.

methods      every method side by side, by name
paper        the paper's recipes, as stated and with scales; a network without simulation
finetuning   all weights of the surrogate, a few steps on recorded strikes
mujoco       MuJoCo with a grid search, and rollouts as anyone would write them
mjx          MJX with Gauss-Newton
control      a stand-in in which MuJoCo is right
"""
