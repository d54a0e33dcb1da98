"""Whether the start matters: 20 random ones on the digits, at the penalty of hold-out, with the certificate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.base import clone

import majorant as mj
from multiview_parts import digits
from multiview_parts.common import Run

FILE = digits.FILE
STARTS = 20
K = 20


def lines(run: Run) -> Iterator[str]:
    """All of this part."""
    views, y = digits.digits(run)
    if run.quick:
        views["pixels"] = views["pixels"][:, ::8]
    split = digits.Split(views, y, run.seeds[0], 100 if run.quick else digits.TRAINING)
    for name, model, target in (
        ("harmonium", mj.Harmonium(K, views=digits.KINDS), ()),
        ("harmonium, hinge", mj.HarmoniumClassifier(K, views=digits.KINDS), (split.y,)),
    ):
        first = clone(model).fit(split.train, *target)
        objectives, proved = [first.objective_], int(first.certificate_.is_global)
        l2, rank, binds = first.l2_, first.rank_, ", more would be used" if first.certificate_.binds else ""
        for seed in range(3 if run.quick else STARTS):
            again = clone(model).set_params(l2=l2, init="random", random_state=seed).fit(split.train, *target)
            objectives.append(again.objective_)
            proved += again.certificate_.is_global
        spread = np.ptp(objectives) / abs(min(objectives))
        yield (
            f"{name}, K = {K}, l2 = {l2:.3g}: {len(objectives) - 1} random starts and the SVD within {spread:.1e} "
            f"of the least objective; certified {proved} of {len(objectives)}, rank {rank}{binds}"
        )
