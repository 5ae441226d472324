from rsr.sessions.exporters.formats import (
    EXPORTERS as EXPORTERS,
    Simulated as Simulated,
    export_session as export_session,
)
