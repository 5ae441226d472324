"""Tasks: each step of `rsr` as a Prefect task, and the bookkeeping that makes a loop restartable. Imports only `rsr`.

Prefect decides when a step runs, DVC whether it must. Read in this order: `stages` (the tasks), `actions` (what each
does), `bookkeeping` (the only module that touches DVC), `versions` (the only one that touches git). `campaign` says
what a loop works on; `locking` lets in one loop at a time; `recovery` and `watcher` clean up after one that was
killed; `workspace` makes new workspaces; `environment` holds what Prefect and DVC are told.
"""
