"""Data: rows in memory, in files, or in a cluster."""

from majorant.data.chunks import Block, Chunks

__all__ = ["Block", "Chunks"]
