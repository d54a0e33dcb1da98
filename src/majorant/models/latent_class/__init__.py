"""Latent classes: labels, family, joint cost, coordinates."""
