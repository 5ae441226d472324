"""A learned simulator of rigid contact, taught by an identified MuJoCo and a few recordings, differentiable throughout.

    teacher = calibrator(TuneConfig(method="cmaes")).fit(scenario, sessions, prior, seed, advance)
    problem = LearningProblem(scenario, sessions, teacher.vector(), teacher.evidence.fitted, GnnSettings(), seed)
    fit = fit_gnn(problem, folder, advance)                       # data scaling, training, fine-tuning where it helps
    network = load_gnn(scenario, folder).network
    poses = rollout(network, world, first_two_poses, frames)      # differentiable

`rsr calibrate --method gnn` and a campaign of the pipeline gnn do the first three. May import simulators, scenarios
and sessions; what hides in a stand-in for reality is closed to it.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
