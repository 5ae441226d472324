"""Tasks: each step of `rsr` as a Prefect task, and the bookkeeping that makes a loop restartable. Imports only `rsr`.

Prefect decides when a step runs, DVC whether it must: `stages.py` holds the tasks, `bookkeeping.py` is the only module
that touches DVC, `versions.py` the only one that touches git. `campaign.py` says what a loop works on; `locking.py`
lets in one loop at a time; `recovery.py` cleans up after one that was killed; `workspace.py` makes new workspaces.
"""
