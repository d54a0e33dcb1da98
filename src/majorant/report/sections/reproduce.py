"""Reproduce: the command or the call, and every setting."""

from __future__ import annotations

import inspect
import numbers as number_types
from collections.abc import Mapping
from typing import Any

import numpy as np

from majorant.report.fit import Fit
from majorant.report.html import escaped, shortened
from majorant.report.section import Section

LONGEST_VALUE = 40
LONGEST_LINE = 76


def reproduce_section(fit: Fit) -> Section:
    """Build the section: the command or call that makes the page again."""
    params = fit.params
    data = ("X, y" if fit.card.needs_target else "X") + ("" if fit.run.bags is None else ", bags=bags")
    code = fit.run.command or python_call(fit.run.estimator, params, data)
    settings = [(name, setting(value)) for name, value in params.items()]
    rows = "".join(f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in settings)
    return Section(
        "reproduce",
        "Reproduce",
        headline(params),
        notes(fit.run.command, params),
        f'<pre>{escaped(code)}</pre><dl class="settings">{rows}</dl>',
    )


def python_call(estimator: Any, params: Mapping[str, Any], data: str = "X") -> str:
    """Return the Python call that makes the estimator, with all settings that differ from defaults, and fits it."""
    signature = inspect.signature(type(estimator)).parameters
    order = [*signature, *(name for name in params if name not in signature)]
    changed = [
        f"{name}={_as_code(params[name])}"
        for name in order
        if name in params and not _is_default(params[name], signature.get(name))
    ]
    name = type(estimator).__name__
    call = f"{name}({', '.join(changed)}).fit({data})"
    if len(call) <= LONGEST_LINE:
        return call
    return f"{name}(\n" + "".join(f"    {setting},\n" for setting in changed) + f").fit({data})"


def setting(value: Any) -> str:
    """Return a setting as text, arrays by their shape."""
    return shortened(value if isinstance(value, str) else _as_code(value), LONGEST_VALUE)


def _is_default(value: Any, parameter: inspect.Parameter | None) -> bool:
    return parameter is not None and repr(value) == repr(parameter.default)


def _as_code(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<array of shape {value.shape}>"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name!r}: {_as_code(one)}" for name, one in value.items()) + "}"
    return " ".join(repr(value).split())


def headline(params: Mapping[str, Any]) -> str:
    """State whether the run can be repeated, in one sentence."""
    if "random_state" not in params:
        return "The settings of this run."
    if isinstance(params["random_state"], number_types.Integral):
        return "The same table, settings and seed give this page again."
    if params["random_state"] is None:
        return "No seed was set, so another run may take other starts."
    return "A generator of random numbers was passed, so another run may take other starts."


def notes(command: str, params: Mapping[str, Any]) -> list[str]:
    """Explain the files beside the page, and what to change for an exact repetition."""
    texts = []
    if command:
        texts.append(
            "Next to this file: <code>model.majorant</code>, <code>assignments.csv</code>, <code>summary.json</code> "
            "and, in <code>tables</code>, the tables of this page."
        )
    if params.get("random_state", 0) is None:
        texts.append("Set <code>random_state</code> to a number to get the same starts again.")
    return texts
