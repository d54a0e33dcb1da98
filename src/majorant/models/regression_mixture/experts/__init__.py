"""Mixtures of generalised linear models with groups, gating, shared coefficients, trimming and labels."""
