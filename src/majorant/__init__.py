"""Latent-variable models whose answer does not depend on a lucky start."""

__version__ = "0.1.0"
