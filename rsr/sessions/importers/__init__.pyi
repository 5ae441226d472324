from rsr.sessions.importers.contactnets import read_contactnets as read_contactnets
from rsr.sessions.importers.double_pendulum import read_double_pendulum as read_double_pendulum
from rsr.sessions.importers.formats import open_recording as open_recording
from rsr.sessions.importers.npz import array_header as array_header
from rsr.sessions.importers.recording import (
    MAX_VALUES as MAX_VALUES,
    Format as Format,
    Recording as Recording,
    Samples as Samples,
    Stream as Stream,
    Wanted as Wanted,
    held_recording as held_recording,
    listed as listed,
    printable as printable,
    unreadable as unreadable,
)
