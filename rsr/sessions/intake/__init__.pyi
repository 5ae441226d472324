from rsr.sessions.intake.gate import admitted as admitted, check_stored as check_stored
from rsr.sessions.intake.screening import IntakeLimits as IntakeLimits
