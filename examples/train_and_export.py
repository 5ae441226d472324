"""Train a policy in a simulator and export it as one ONNX file.

    python examples/train_and_export.py            # 2 million steps: some three minutes
    python examples/train_and_export.py 20000      # a glance: the policy will not have learnt to push

Files go to the folder that it is run in.
"""

# %% The scenario, and how long to train: None stands for as many steps as the algorithm was measured to need
import sys

import numpy as np

import rsr

steps = int(sys.argv[1]) if len(sys.argv) > 1 else None
push_cube = rsr.load_scenario("push_cube")

# %% Train in the nominal simulator, each copy with parameters of its own, drawn from the scenario's prior.
# After a calibration: rsr.train(push_cube, fit), or with what the fit leaves open drawn: randomise="posterior" as well.
policy = rsr.train(push_cube, steps=steps, randomise="posterior")

# %% Keep it, read it back, let it act
policy.save("policy")
again = rsr.Policy.load("policy")
observation = np.zeros((1, policy.normaliser.mean.size))
print("joint displacements:", again.act(observation).round(3))

# %% For the robot: normaliser, network and kinematics in one ONNX file, compared with the policy before it is written
print("exported to", policy.export("exported"))
