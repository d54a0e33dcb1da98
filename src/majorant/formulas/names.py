"""Python names that replace columns of any name in the text of a formula."""

from __future__ import annotations

import re
from collections.abc import Collection

_WORD = r"(?:[^\W\d]|\.(?=[^\W\d]))[\w.]*+"
_PLAIN = re.compile(_WORD)
_READ = re.compile(
    r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|%in%)"""  # what is kept as it is
    rf"|`((?:\\`|[^`])*)`|(?<![\w.])({_WORD})(?!\s*\(|\s*=(?!=))",  # no function, no keyword of one
    flags=re.DOTALL,
)
_HIDDEN = re.compile(r"column_((?:[0-9a-f]{2})*)_")


def hidden(name: str) -> str:
    """Return the Python name that replaces a column in the text of a formula."""
    return f"column_{name.encode('utf-8', 'surrogatepass').hex()}_"


def column_hidden_in(word: str) -> str | None:
    """Return the column that a Python name replaces; None if it replaces none."""
    found = _HIDDEN.fullmatch(word)
    return None if found is None else bytes.fromhex(found[1]).decode("utf-8", "surrogatepass")


def hide(text: str, columns: Collection[str]) -> str:
    """Replace columns and whatever is in backticks by Python names; other words stay as they are."""

    def replaced(found: re.Match[str]) -> str:
        kept, backticked, word = found.groups()
        if kept == "%in%":  # a + b %in% a is a + a:b, as in R
            return ":"
        if backticked is not None:
            return hidden(backticked.replace(r"\`", "`"))
        return hidden(word) if word is not None and word in columns else found[0]

    return _READ.sub(replaced, text)


def show(text: str) -> str:
    """Replace Python names by columns, with backticks where needed; the inverse of `hide`."""
    return _HIDDEN.sub(lambda found: quoted(str(column_hidden_in(found[0]))), text)


def quoted(name: str) -> str:
    """Return the column's name as written in a formula, in backticks if needed."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", r"\`") + "`"
