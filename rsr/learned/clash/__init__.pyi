from rsr.learned.clash.adaptation import (
    GROUND as GROUND,
    Adapted as Adapted,
    IdentifiedImpact as IdentifiedImpact,
    KnownBlock as KnownBlock,
    StruckBlock as StruckBlock,
    adapt as adapt,
    best_start as best_start,
    identify as identify,
    parameter_losses as parameter_losses,
    with_ground as with_ground,
)
from rsr.learned.clash.calibration import (
    Figures as Figures,
    Predicted as Predicted,
    Predictor as Predictor,
    Tuned as Tuned,
    adapted as adapted,
    joined as joined,
    nominal as nominal,
    tune as tune,
)
from rsr.learned.clash.comparison import (
    CURVE as CURVE,
    Comparison as Comparison,
    compare as compare,
    learning_curve as learning_curve,
    write_comparison as write_comparison,
)
from rsr.learned.clash.extraction import (
    Extracted as Extracted,
    StrikeTrajectory as StrikeTrajectory,
    extract_strikes as extract_strikes,
)
from rsr.learned.clash.frame import (
    MIRROR as MIRROR,
    TOLERANCE as TOLERANCE,
    Accuracy as Accuracy,
    accuracy as accuracy,
    relative_errors as relative_errors,
    to_contact as to_contact,
)
from rsr.learned.clash.generate import (
    PAIRS as PAIRS,
    StrikePairs as StrikePairs,
    generate_pairs as generate_pairs,
    load_definition_of as load_definition_of,
    load_pairs as load_pairs,
    load_shape_of as load_shape_of,
    shape_card as shape_card,
    shape_from as shape_from,
)
from rsr.learned.clash.hybrid.simulator import HybridSimulator as HybridSimulator, check_same_block as check_same_block
from rsr.learned.clash.law import fit_law as fit_law
from rsr.learned.clash.planning import (
    HybridStrikes as HybridStrikes,
    Rollouts as Rollouts,
    StrikePlan as StrikePlan,
    plan as plan,
)
from rsr.learned.clash.prediction import (
    BaseModel as BaseModel,
    Blended as Blended,
    Corrected as Corrected,
    blend as blend,
    correct as correct,
    surrogate_base as surrogate_base,
)
from rsr.learned.clash.push_training import (
    SB3_DEFAULTS as SB3_DEFAULTS,
    PushCheck as PushCheck,
    PushSettings as PushSettings,
    TrainedPush as TrainedPush,
    push_figures as push_figures,
    train_push as train_push,
)
from rsr.learned.clash.pushing import Pushed as Pushed, push_routes as push_routes
from rsr.learned.clash.residual import (
    PRIOR as PRIOR,
    ObservedStrikes as ObservedStrikes,
    ResidualPrior as ResidualPrior,
    observe as observe,
)
from rsr.learned.clash.scenes.adaptation import (
    adapt_scene as adapt_scene,
    compare_scene as compare_scene,
    scene_curve as scene_curve,
)
from rsr.learned.clash.scenes.impacts import simulate as simulate
from rsr.learned.clash.scenes.model import AdaptedScene as AdaptedScene
from rsr.learned.clash.scenes.scene import ContactScene as ContactScene
from rsr.learned.clash.scenes.simulator import HybridScene as HybridScene
from rsr.learned.clash.scenes.storage import load_scene as load_scene, save_scene as save_scene
from rsr.learned.clash.scenes.tables import (
    SceneStrikes as SceneStrikes,
    read_scene_strikes as read_scene_strikes,
    scene_states as scene_states,
)
from rsr.learned.clash.segment import (
    ROUTES as ROUTES,
    SEGMENT_M as SEGMENT_M,
    Route as Route,
    SegmentTask as SegmentTask,
)
from rsr.learned.clash.sliding import (
    SlidingModel as SlidingModel,
    fit_sliding as fit_sliding,
    velocities_known as velocities_known,
)
from rsr.learned.clash.storage import (
    load_adapted as load_adapted,
    load_surrogate as load_surrogate,
    save_adapted as save_adapted,
    save_surrogate as save_surrogate,
)
from rsr.learned.clash.strike_recordings import Recordings as Recordings, strikes_of as strikes_of
from rsr.learned.clash.surrogate import (
    STEPS as STEPS,
    Distilled as Distilled,
    Network as Network,
    Surrogate as Surrogate,
    distil as distil,
    judge as judge,
    new_surrogate as new_surrogate,
    parted as parted,
    reproducible as reproducible,
    training_tensors as training_tensors,
)
from rsr.learned.clash.tables import read_strikes as read_strikes, write_strikes as write_strikes
