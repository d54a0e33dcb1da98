"""The report of each kind of model: a new kind is one more entry of the table.

Every model is of one kind. Sections of its own are named on its card: `majorant.registry.ModelCard.sections`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from majorant.registry import named

KINDS = {
    "classification": "latent_classes confusion classes probabilities representation:topics representation:views "
    "representation:class_profiles embedding embedding:neighbours representation:optimality",
    "clustering": "clusters profiles discriminants:map pair strip silhouettes criteria",
    "mixture": "regularity components profiles discriminants:map pair strip uncertainty estimates:mixture_estimates "
    "criteria",
    "latent class analysis": "regularity class_profile:class_sizes class_profile:populations "
    "later_steps:invariance class_profile later_steps:correlations class_profile:effects later_steps:outcomes "
    "uncertainty class_fit class_fit:bivariate class_fit:assignment class_fit:classification "
    "estimates:mixture_estimates criteria",
    "representation": "representation:topics representation:views embedding embedding:neighbours "
    "representation:optimality",
    "regression": "left_out estimates lines:fit effects:effects_of_features residuals residuals:quantiles "
    "effects:separation criteria optima",
}
"""Sections by kind in the order of the page, each as its file, and what its builder is called if not like the file.

They come before those of the model and `LAST`. Files are imported for the pages that have them.
"""
LAST = "search certificate convergence columns reproduce"
"""Sections at the end of every page: how the answer was found."""


def own(kind: str, room: str, function: str) -> Any:
    """Return a kind's function in a room: what it measures, and the header of its page."""
    return named(f"majorant.report.{room}.{kind.replace(' ', '_')}:{function}")


def builders(names: str) -> Iterator[Any]:
    """Yield the builders of sections."""
    for file, _, builder in (name.partition(":") for name in names.split()):
        yield named(f"majorant.report.sections.{file}:{builder or file}_section")
