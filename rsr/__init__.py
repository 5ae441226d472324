"""rsr: a Real-Sim-Real workbench. The library: no Prefect, no DVC, works in a notebook.

    import rsr

    arm = rsr.Scenario.from_mjcf("arm.xml", dt=0.01, measured=..., command=..., tune=...)
    fit = rsr.calibrate(arm, [{"q": q, "u": u} for q, u in runs])
    fit.save_model("tuned.xml")

Each public name is imported when it is first used, so that `import rsr` itself loads neither MuJoCo nor JAX nor torch.
Rooms are, too: `rsr.sessions.join_sessions` needs no other import than `rsr`.

Rooms, each importing only from those before it:
`sessions -> scenarios -> simulators, infogap -> environments -> policies -> realities, calibration, learned -> planning
-> reports -> pipelines -> cli, api`.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
