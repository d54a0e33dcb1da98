"""Drawing for every report: scales, axes, marks and text as inline SVG; nothing here knows a model."""
