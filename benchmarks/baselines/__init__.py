"""Baselines that benchmarks compare the product with: recipes of papers, ablations, plain ways to do the same.

Nothing in `rsr` imports them. Benchmarks import them as `baselines`, tests as `benchmarks.baselines`.
"""
