from rsr.pipelines.clash.scene import scene_calibration as scene_calibration
from rsr.pipelines.clash.table import CLASH as CLASH
from rsr.pipelines.core import (
    Curve as Curve,
    Plot as Plot,
    Step as Step,
    StepTable as StepTable,
    collecting as collecting,
)
from rsr.pipelines.gnn.table import GNN as GNN
from rsr.pipelines.lab.arrivals import QUIET_S as QUIET_S, Arrival as Arrival, arrival as arrival
from rsr.pipelines.lab.deploy import deploy as deploy
from rsr.pipelines.lab.gap_check import check_gap as check_gap
from rsr.pipelines.loop.collect import check_beginning as check_beginning
from rsr.pipelines.loop.stages import simulators as simulators
from rsr.pipelines.methods import (
    FitControls as FitControls,
    MethodFolders as MethodFolders,
    check_method as check_method,
    simulator_of as simulator_of,
    tune_into as tune_into,
)
from rsr.pipelines.receipt import (
    installed_version as installed_version,
    leave_receipt as leave_receipt,
    reason_to_stop as reason_to_stop,
    run_step as run_step,
)
from rsr.pipelines.rendering import (
    LAUNCHER_FILE as LAUNCHER_FILE,
    PYTHON_FILE as PYTHON_FILE,
    render_launcher as render_launcher,
    render_pipeline as render_pipeline,
)
from rsr.pipelines.tables import (
    TABLE as TABLE,
    WITHOUT_POLICY as WITHOUT_POLICY,
    check_same_task as check_same_task,
    own_table as own_table,
    table_of as table_of,
    with_curves as with_curves,
)
from rsr.pipelines.verification import verify as verify
