"""Tasks: each step of `rsr` as a Prefect task, and the bookkeeping that makes a loop restartable. Imports only `rsr`.

Prefect decides when a step runs, DVC whether it must. Read in this order: `loop` (what is done, with Prefect or
without), `stages` (the same as Prefect's tasks), `bookkeeping` (the only module that touches DVC), `versions` (the
only one that touches git). `campaign` says what a loop works on; `locking` lets in one loop at a time; `watcher` ends
what a killed one left running; `workspace` makes new workspaces; `environment` holds the settings of Prefect and DVC;
`terminal` keeps errors to one sentence. Of a day in the lab: `lab` (its forms, its inbox, events), `watch` (has the
robot changed?). Work for many processors: `fan_out`, as `engine_settings` says.
"""
