"""What harmoniums with a target share: the fit, the weight of the loss, and checks of the target."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from majorant._validation import check_auto
from majorant.models.harmonium.base import HarmoniumBase
from majorant.models.harmonium.layout import (
    Layout,
    Loss,
    Supervision,
    penalties,
)
from majorant.models.harmonium.links import Groups
from majorant.models.harmonium.search import Found
from majorant.models.harmonium.tables import Table

Array = NDArray[np.float64]

LOSS_WEIGHTS = (1000.0, 100.0, 10.0, 1.0)
"""Weights of the loss that ``loss_weight="auto"`` compares."""


class SupervisedHarmonium(HarmoniumBase):
    """A harmonium with a target."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_auto("loss_weight", self.loss_weight)

    def _supervision(self, loss: Loss | None, n_labels: int = 0) -> Supervision:
        weight = check_auto("loss_weight", self.loss_weight)
        compared = LOSS_WEIGHTS if weight is None else ()
        return Supervision(loss, n_labels, weight or LOSS_WEIGHTS[0], compared, penalties(self.l2)[1])

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find components that describe the views and predict the target.

        Parameters
        ----------
        X, sample_weight
            See `Harmonium.fit`.
        y : array-like of shape (n_samples,)
            Numbers for a regression. For a classification at least two labels, numbers or text; a label whose rows have
            no weight is ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data, target, weights or parameters cannot be used; the message says what to change.
        """
        with self._all_or_nothing():
            self._check_parameters()
            views, tables = self._read(X, reset=True)
            target, supervision = self._learnt_target(y, tables, sample_weight)
            self._fit(views, tables, target, sample_weight=sample_weight, supervision=supervision)
        return self

    def _learnt_target(self, y: Any, tables: dict[str, Table], sample_weight: Any) -> tuple[NDArray[Any], Supervision]:
        """Check y, keep its labels or its units as fitted attributes, and encode it."""
        raise NotImplementedError(f"{type(self).__name__} must say what its target is")

    def _keep(self, found: Found, layout: Layout, n_components: int, unlinked: Groups) -> None:
        super()._keep(found, layout, n_components, unlinked)
        self.loss_weight_ = self.supervision_.weight
        self.loss_weight_path_ = np.array(found.weight_path).reshape(-1, 2)

    def _checked_target(self, y: Any, tables: dict[str, Table], **options: Any) -> NDArray[Any]:
        """Check that y has one value per row."""
        if y is None:
            raise ValueError(f"This {type(self).__name__} requires y to be passed, but the target y is None")
        y = column_or_1d(check_array(y, ensure_2d=False, input_name="y", **options), warn=True)
        check_consistent_length(next(iter(tables.values())).missing, y)
        return np.asarray(y)
