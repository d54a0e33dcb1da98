"""The models, one file or folder each; `majorant.registry.discover` finds them."""
