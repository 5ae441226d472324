"""The front door: what `import rsr` offers, from arrays to a tuned model, in a script or a notebook.

Thin functions over the rooms below, with the command line's defaults. `rsr/__init__.py` re-exports them one by one, and
imports nothing before it is asked for.
"""
