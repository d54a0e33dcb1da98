"""Errors of saving and loading."""

from __future__ import annotations

import struct
import zipfile

FAULTS_OF_A_FILE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
)
"""What reading a damaged file may raise."""


class SavedModelError(ValueError):
    """A file that is not a model saved by majorant, or not one that this version can load safely."""


class UnsavableError(TypeError):
    """A value that majorant's own format does not hold, such as a function."""
