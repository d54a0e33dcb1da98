"""What is raised when a model cannot be saved or loaded?"""

from __future__ import annotations


class SavedModelError(ValueError):
    """A file that is not a model saved by majorant, or not one that this version can load safely."""


class UnsavableError(TypeError):
    """A value that majorant's own format does not hold, such as a function."""
