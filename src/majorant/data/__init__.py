"""Where are the rows?"""

from majorant.data.chunks import Block, Chunks

__all__ = ["Block", "Chunks"]
