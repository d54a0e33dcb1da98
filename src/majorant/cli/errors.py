"""Error messages of the command line: one sentence and what to do, without a traceback."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature

from majorant.registry import CARDS, ESTIMATORS, ModelCard
from majorant.summary.text import WIDTH, wrapped

_PREFIX = "majorant: "
_MOST_NAMES = 20
_OPTIONS = {name: f"--{name}" for name in ("groups", "gating", "offset", "trials", "population", "family", "views")}
_OPTIONS |= {"sample_weight": "--weights", "random_state": "--random-state", "component_labels": "--component-labels"}
_SETTING = re.compile(
    r"""(?<![\w"'-])(?<!--set )(?<!--vary )([a-z]\w*)(=(?:(["']?)([\w+-](?:[\w.+-]*[\w+-])?)\3)?)?(?![\w"'(={[])"""
)
_QUOTED = re.compile(r"""((?<![\w=])(["'])(?:(?!\2).)*\2(?!\w))""")
_ATTRIBUTE = r"[a-z][a-z_]*_"
_ATTRIBUTES = re.compile(rf"(?<![\w\"']){_ATTRIBUTE}(?:(?:, | and ){_ATTRIBUTE})*(?![\w\"'])")


class CommandError(Exception):
    """Wrong usage or bad data.

    Parameters
    ----------
    *sentences : str
        What was got, and what to do, as one line each.
    """

    def __init__(self, *sentences: str) -> None:
        super().__init__(" ".join(sentences))
        self.sentences = sentences

    def text(self) -> str:
        """Return the text for standard error."""
        lines: list[str] = []
        for sentence in self.sentences:
            lines += wrapped(sentence, WIDTH, " " * len(_PREFIX) if lines else _PREFIX, " " * len(_PREFIX))
        return "\n".join(lines)


class NoRowsLeftError(CommandError):
    """Every row of a table, or of a part of one, lacks a value."""


def sentence(text: str) -> str:
    """Return the text with a full stop at the end."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def printable(text: str) -> str:
    """Replace what UTF-8 cannot encode by question marks, as a file name may be any bytes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def did_you_mean(wrong: str, known: Sequence[str]) -> str:
    """Return `` Did you mean "tuned"?`` with the nearest known name, or "" if none is near."""
    by_lower_case = {name.lower(): name for name in reversed(known)}
    nearest = difflib.get_close_matches(wrong.lower(), by_lower_case, n=1, cutoff=0.6)
    return f' Did you mean "{by_lower_case[nearest[0]]}"?' if nearest else ""


def as_options(text: str, columns: Collection[str] = ()) -> str:
    """Say what a model says in Python as options and files of the command line; not what is quoted, nor `columns`."""
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    text = _QUOTED.sub(keep, text)
    parameters = {name for cls in ESTIMATORS.values() for name in signature(cls).parameters}
    sizes = {card.size_parameter for card in CARDS.values()}

    def as_option(found: re.Match[str]) -> str:
        name, equals, _, value = found.groups()
        is_known = (name in _OPTIONS or name in parameters) and name not in columns
        is_told = equals or "_" in name or text.startswith(" must be", found.end())
        if not is_known or not is_told or re.search(r"\w\([^()]*$", text[: found.start()]):
            return found[0]
        option = "--k" if name in sizes else _OPTIONS.get(name, f"--set {name}")
        return option if not value else f"{option}{'=' if option.startswith('--set') else ' '}{value}"

    said = re.sub(r"(?<!\w )(?<![\"'])\bX has ", "the table has ", _SETTING.sub(as_option, text))
    said = _ATTRIBUTES.sub("model.majorant", said)
    return re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], said)


def listed(names: Sequence[str]) -> str:
    """Join at most twenty names by commas."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


@contextmanager
def refusals(card: ModelCard) -> Iterator[None]:
    """Convert a model's errors to CommandError."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise CommandError(f"{card.title} refused: {as_options(' '.join(str(error).split()))}") from error
    except MemoryError as error:
        raise CommandError("there is not enough memory for this table.", "Fit fewer rows or columns.") from error
