"""Text on the terminal about a fit, in blocks of at most 80 columns."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from majorant._progress import is_stopped
from majorant.cli.columns import column_lines
from majorant.cli.errors import as_options, listed
from majorant.results.selection import Selection
from majorant.search import SearchReport
from majorant.search.record import in_words
from majorant.summary import Block, Table, best_sentences, bound_sentence, counted
from majorant.summary.text import WIDTH, wrapped

_LABEL_WIDTH = 9
_MOST_ROWS = 20


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect what models warn of, each once, in a list that is filled at the end."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    telling = [w for w in caught if issubclass(w.category, UserWarning | RuntimeWarning)]
    if is_stopped():  # no iteration limit was to blame
        telling = [w for w in telling if not issubclass(w.category, ConvergenceWarning)]
    said += dict.fromkeys(" ".join(str(w.message).split()) for w in telling)


def labelled(label: str, text: str) -> list[str]:
    """Return lines of text with a label at the left of the first."""
    return wrapped(text, WIDTH, f"{label:<{_LABEL_WIDTH}}", " " * _LABEL_WIDTH)


def table_lines(run: Any) -> list[str]:
    """Return the block "Table": the rows of a `FittedRun`, and sentences on the columns."""
    matrix = run.matrix
    within = [
        f" in {counted(number, noun)}"
        for number, noun in ((matrix.n_bags, "bag"), (matrix.n_sequences, "sequence"))
        if number is not None
    ]
    added = f", {run.n_added} of them added for times that lack" if run.n_added else ""
    used = f"{counted(run.n_used, 'row')}{''.join(within)} used{added}"
    left_out = f"{run.n_left_out} left out"
    if run.n_left_out:
        of_covariates = f" ({matrix.n_without_covariate} in covariates)" if matrix.n_without_covariate else ""
        left_out = f"{run.n_left_out} of {run.n_used + run.n_left_out} left out for empty cells{of_covariates}"
    lines = labelled("Table", f"{run.table.name}, {used}, {left_out}")
    if run.n_missing:
        cells = f"{run.n_missing} of {matrix.values.size} cells"
        lines += labelled("", f"{cells} {'is' if run.n_missing == 1 else 'are'} empty: left in, and not filled in")
    n_only_time = int(np.isnan(matrix.values).all(axis=1).sum()) if run.card.in_order else 0
    if n_only_time:
        rows = f"{counted(n_only_time, 'row')} without any cell"
        lines += labelled("", f"{rows} {'advances' if n_only_time == 1 else 'advance'} time only")
    for number, sentence in enumerate(column_lines(run.column_uses)):
        lines += labelled("" if number else "Columns", sentence)
    return lines + (labelled("", run.advice_on_text) if run.advice_on_text else [])


def model_lines(title: str, chosen: str, n_features: int, standardised: bool) -> list[str]:
    """Return the block "Model"; `chosen` is its size and, if settings were compared, the chosen one."""
    text = f"{title}, {chosen}, {counted(n_features, 'feature')}"
    return labelled("Model", text + (", standardised" if standardised else ""))


def view_lines(views: Sequence[Any], in_none: Sequence[str] | None) -> list[str]:
    """Return the block "Views": the columns of each, and those in none; `in_none` is None without a file of views."""
    if in_none is None:
        columns = counted(len(views[0].names), "column")
        return labelled("Views", f"one of all {columns}, as real numbers; --views FILE names several, of several kinds")
    lines: list[str] = []
    for view in views:
        size = counted(len(view.names), "word" if view.kind == "chain" else "column")
        lines += labelled("" if lines else "Views", f"{view.name}: {size}, {view.kind}")
    if in_none:
        lines += labelled("", f"in no view: {listed(in_none)}")
    return lines


def selection_lines(selection: Selection, seconds: float) -> list[str]:
    """Return the block "Compare"."""
    return labelled("Compare", f"{counted(len(selection.candidates), 'fit')} by {selection.name} in {seconds:.1f} s")


def matrix_lines(selection: Selection) -> list[str]:
    """Return the criterion of every fit, the preferred one and excluded ones."""
    lines = ["", *selection.matrix().to_lines(), ""]
    for sentence in (selection.sentence, *selection.exclusions, selection.caption):
        lines += wrapped(as_options(sentence), WIDTH)
    return lines


def starts_lines(search: SearchReport, seconds: float | None) -> list[str]:
    """Return the block "Search"; without `seconds` for one of several fits."""
    time = "" if seconds is None else f" in {seconds:.1f} s"
    optima = counted(search.n_distinct, *(f"distinct {end}" for end in search.ends))
    return labelled("Search", f"{in_words(search.n_starts, search.n_perturbations)}{time}, {optima}")


def result_lines(search: SearchReport, verdict: str = "") -> list[str]:
    """Return sentences on the best optimum, the second best and the bound; then those of a certificate."""
    sentences = best_sentences(search)
    if search.proved_bound is not None or search.why_no_bound:
        sentences.append(bound_sentence(search))
    sentences += [verdict] if verdict else []
    return [line for sentence in sentences for line in wrapped(as_options(sentence), WIDTH)]


def criteria_lines(model: Any, criteria: Mapping[str, float]) -> list[str]:
    """Return the sentence on the information criteria of a fit that was compared with no other."""
    told = [f"{name.upper()} {value:.2f}" for name, value in criteria.items() if math.isfinite(value)]
    return wrapped(f"{listed(told)}, of {counted(model.n_parameters_, 'parameter')}.", WIDTH) if told else []


def penalised_lines(model: Any) -> list[str]:
    """Return the definition of a harmonium's log-loss, and how the penalty of the predicted view was chosen."""
    from majorant.models.harmonium.summary import objective_in_words, view_penalty_in_words

    texts = [objective_in_words(model)]
    if getattr(model, "select_by", None) is not None:
        texts += [f"Penalties were compared by the held-out loss of {model.select_by} given the other views."]
        texts += [view_penalty_in_words(model)]
    return [line for text in texts if text for line in wrapped(text, WIDTH)]


def explained_lines(target: str, r2: float) -> list[str]:
    """Return the sentence on the share of the target's variance that is explained, and on which rows."""
    return wrapped(f"R2 of {target} is {r2:.3f} on the rows of the fit; on new rows it is usually lower.", WIDTH)


def parts_lines(block: Block, standardised: bool) -> list[str]:
    """Return the tables of the model's parts, shortened if long, and the sentences of their block."""
    lines: list[str] = []
    for table in block.content:
        if isinstance(table, Table):
            lines += ["", *table.head(_MOST_ROWS).to_lines()]
            if table.n_rows > _MOST_ROWS:
                lines.append(f"  {table.n_rows - _MOST_ROWS} more in summary.json")
    sentences = [item for item in block.content if isinstance(item, str)]
    if standardised:
        sentences.append("Features in standard deviations from their mean.")
    lines += [""] if sentences else []
    for sentence in sentences:
        lines += wrapped(as_options(sentence), WIDTH, "  ")
    return lines


def written(done: str, said: Sequence[str]) -> list[str]:
    """Return what was written, and warnings about the table."""
    return [*labelled("Wrote", done), *look_out_lines(said)]


def look_out_lines(sentences: Sequence[str], columns: Sequence[str] = ()) -> list[str]:
    """Return the lines of warnings about a table of these columns."""
    return [
        line
        for sentence in sentences
        for line in wrapped(f"Warning: {as_options(sentence, columns)}", WIDTH, "", "         ")
    ]


def wrote_lines(files: Mapping[Path, str]) -> list[str]:
    """Return the block "Wrote": each file and its description, on two lines if they do not fit on one."""
    longest = max(len(str(path)) for path in files)
    fits = _LABEL_WIDTH + longest + 4 + max(map(len, files.values())) <= WIDTH
    lines: list[str] = []
    for path, what in files.items():
        label = f"{'' if lines else 'Wrote':<{_LABEL_WIDTH}}"
        if fits:
            lines.append(f"{label}{path!s:<{longest}}    {what}")
        else:
            lines += [f"{label}{path}", f"{'':<{_LABEL_WIDTH + 4}}{what}"]
    return lines
