"""What is minimised? One file or folder a model; `majorant.registry.discover` finds them."""
