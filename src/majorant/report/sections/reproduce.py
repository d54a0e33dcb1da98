"""Reproduce: the command or the call, and every setting."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from majorant.report.fit import Fit
from majorant.report.html import escaped, shortened
from majorant.report.numbers import integer
from majorant.report.section import Section
from majorant.report.words import reproduce as words

LONGEST_VALUE = 40


def reproduce_section(fit: Fit) -> Section:
    """What to type to get the page again."""
    params = fit.params
    code = fit.run.command or python_call(fit.run.estimator, params)
    settings = [(name, setting(value)) for name, value in params.items()]
    settings.append(("rows used, left out", f"{integer(fit.n_rows)}, {integer(fit.run.n_left_out)}"))
    rows = "".join(f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in settings)
    return Section(
        "reproduce",
        "Reproduce",
        words.headline(params),
        f'<pre>{escaped(code)}</pre><dl class="settings">{rows}</dl>',
        words.notes(fit.run.command, params),
        is_figure=False,
    )


def python_call(estimator: Any, params: Mapping[str, Any]) -> str:
    """The call that makes and fits the estimator, with the settings that are not the defaults."""
    defaults = {name: p.default for name, p in inspect.signature(type(estimator)).parameters.items()}
    changed = [f"{name}={setting(v)}" for name, v in params.items() if repr(v) != repr(defaults.get(name, ...))]
    return f"{type(estimator).__name__}({', '.join(changed)}).fit(X)"


def setting(value: Any) -> str:
    """A setting as text, arrays by their shape."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    text = value if isinstance(value, str) else repr(value)
    return shortened(" ".join(str(text).split()), LONGEST_VALUE)
