"""Why a fit of a hidden Markov model does not count, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.densities.regression import EXACT_LINE, NO_MAXIMUM
from majorant.engine.descent import Ends
from majorant.engine.mixture import Array, OnData
from majorant.laws.chain import FLOOR
from majorant.models.hidden_markov.emissions import LinesEmission
from majorant.models.hidden_markov.fitted import FittedMarkovModel
from majorant.models.hidden_markov.lines import without_effect
from majorant.models.mixture_rows import Rows
from majorant.models.undetermined_covariances import of_repeated, of_undetermined


class JudgedMarkovModel(FittedMarkovModel):
    """The words on a fit whose lines, or whose columns, have no regular solution."""

    def _degeneracy(self, contest: Any, ends: Ends[Any], order: NDArray[np.intp]) -> str:
        said = super()._degeneracy(contest, ends, order)
        if not said or contest.lines is not None or self.dependent_ or self.constant_:
            return said
        names, repeated = self._feature_names(), ""
        for one, table in zip(self.emissions_, contest.columns, strict=False):
            if not one.is_discrete:
                own = [names[one.first + j] for j in range(table.shape[1])]
                repeated += of_repeated(own, table, contest.weights)
                same = np.nanmax(table, axis=0) == np.nanmin(table, axis=0)
                self.constant_ = [*self.constant_, *(own[j] for j in np.flatnonzero(same))]
        return of_undetermined([], self.constant_, "there is no spread in any state") or said + repeated

    def _of_each(self, name: str, values: Any) -> Array:
        """Return probabilities that came to the floor of the fit, or so near to one, as zero and one."""
        told = super()._of_each(name, values)
        is_chain = name in ("transitions", "start_probabilities")
        return np.where(np.abs(told - np.round(told)) < 10 * FLOOR, np.round(told), told) if is_chain else told

    def _keep(self, contest: Any, found: Any, ends: Ends[Any], on: OnData, rows: Rows) -> None:
        super()._keep(contest, found, ends, on, rows)
        if contest.lines is not None:
            away = contest.lines.separated(on, ends, self._in_words(self._entry_names("coef") or []), contest.unseen)
            self.separated_ = f"{self.separated_} {away}".strip()

    def _warnings(self, contest: Any) -> list[str]:
        said = super()._warnings(contest)
        if isinstance(lines := self.emissions_[0], LinesEmission):
            said += without_effect(
                contest.columns[0], self._in_words(self._entry_names("coef") or []), lines.has_constant
            )
        return said

    def _advice(self) -> str:
        if EXACT_LINE in self.degeneracy_ and self.n_components > 1:
            return "fit a single regression"
        if NO_MAXIMUM in self.degeneracy_:
            return "take in more rows, unless lines without noise are meant"
        return super()._advice()
