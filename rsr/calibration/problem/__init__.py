"""The problem of every method: windows, residuals, their Jacobians, nuisances, held-out evidence."""
