"""Drawings as inline SVG: scales, axes, marks and text. Nothing here depends on a model."""
