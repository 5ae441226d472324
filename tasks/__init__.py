"""Tasks: each step of `rsr` as a Prefect task, and the bookkeeping that makes a loop restartable. Imports only `rsr`.

Prefect decides when a step runs, DVC whether it must. Read in this order: `stages` (the tasks), `actions` (what each
does), `bookkeeping` (the only module that touches DVC), `versions` (the only one that touches git). `campaign` says
what a loop works on; `locking` lets in one loop at a time; `recovery` and `watcher` clean up after one that was
killed; `workspace` makes new workspaces; `environment` holds what Prefect and DVC are told. Of a day in the lab:
`lab` (its forms), `inbox` (has what was waited for come?), `watch` (has the robot changed?), `events`. Work for many
processors: `fan_out`, on `engines`, as `engine_settings` says; `bare_loop` is the loop without Prefect.
"""
