from rsr.sessions.checks.duplicates import EpisodePrint as EpisodePrint, fingerprints as fingerprints
from rsr.sessions.checks.findings import (
    Finding as Finding,
    SessionVerdict as SessionVerdict,
    counted as counted,
    from_error as from_error,
    verdict as verdict,
)
from rsr.sessions.checks.inspection import Inspection as Inspection, inspect_session as inspect_session
from rsr.sessions.checks.problems import (
    GRID_TOLERANCE as GRID_TOLERANCE,
    check_session as check_session,
    find_problems as find_problems,
)
from rsr.sessions.checks.turns import refuse_wraps as refuse_wraps
from rsr.sessions.exporters.formats import (
    EXPORTERS as EXPORTERS,
    Simulated as Simulated,
    export_session as export_session,
)
from rsr.sessions.importers.contactnets import read_contactnets as read_contactnets
from rsr.sessions.importers.double_pendulum import read_double_pendulum as read_double_pendulum
from rsr.sessions.ingest.mapping import (
    Question as Question,
    Target as Target,
    read_lines as read_lines,
    write_mapping as write_mapping,
)
from rsr.sessions.ingest.session import Ingested as Ingested
from rsr.sessions.ingest.units import convertible as convertible, factor as factor
from rsr.sessions.intake.archives import SUFFIXES as SUFFIXES, Guarded as Guarded
from rsr.sessions.intake.gate import (
    admitted as admitted,
    check_stated as check_stated,
    check_stored as check_stored,
    quarantine as quarantine,
)
from rsr.sessions.intake.screening import IntakeLimits as IntakeLimits
from rsr.sessions.journal import RECORDING as RECORDING, Journal as Journal
from rsr.sessions.model import (
    Card as Card,
    Channel as Channel,
    Episode as Episode,
    Session as Session,
    join_sessions as join_sessions,
    stretches as stretches,
)
from rsr.sessions.public import get_data as get_data, public_data as public_data
from rsr.sessions.storage import (
    is_session as is_session,
    is_session_name as is_session_name,
    read_session as read_session,
    recover_session as recover_session,
    write_session as write_session,
)
