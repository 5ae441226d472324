from rsr.sessions.ingest.session import ingest as ingest
