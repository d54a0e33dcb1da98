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
"""Errors that reading a damaged file may raise."""


class SavedModelError(ValueError):
    """Error for a file that is not a model saved by majorant, or that this version cannot load safely."""


class UnknownModelError(SavedModelError):
    """Error for a file of a model that nothing has registered."""


class UnsavableError(TypeError):
    """Error for a value that majorant's format cannot hold, such as a function."""
