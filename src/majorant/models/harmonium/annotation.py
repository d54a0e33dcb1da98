"""What is expected of a view that is not there: by the model itself, or by a readout that was calibrated for it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from majorant._validation import check_choice, check_integer, check_positive, check_real, check_sample_weight
from majorant.models.harmonium.readout import fit_readout, read_out
from majorant.models.harmonium.tables import distinct_rows, n_rows
from majorant.models.harmonium.variables import FittedView, rows_of_views

Array = NDArray[np.float64]


class AnnotationMixin:
    """`annotate`, `calibrate` and `decode` for fitted harmoniums."""

    views_: tuple[FittedView, ...]
    n_components_: int
    n_jobs: int | None
    _read: Any
    _fitted: Any
    _view: Any

    def calibrate(self, X: Any, *, l2: float | str = "auto", sample_weight: Any = None) -> Self:
        r"""Learn, for each view of bits, a logistic regression of every bit on the latents that the other views give.

        Minimised is the mean over rows of the log-loss of all bits, plus :math:`\frac{\lambda}{2} |w|^2`, w the
        coefficients for latents in units of their deviations.

        ``annotate(X, view, calibrated=True)`` then reads the bits out by it: probabilities that are right on average
        even where the model is not. To be called after `fit`, usually with the same rows. Rows that lack a view of bits
        teach nothing of it; a view that X lacks is not learnt.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays
        l2 : "auto" or float, default="auto"
            :math:`\lambda`, the same for all bits of a view. "auto": of 1, 0.32, 0.1 and so on to 0.0001, the one with
            the least log-loss in five-fold cross-validation over distinct rows, or on one of the folds where there are
            more than 2000; ``readout_l2_`` tells it for each view.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X has no view of bits or no other view, or no row with weight has the bits.
        """
        check_is_fitted(self)
        if isinstance(l2, str):
            check_choice("l2", l2, ["auto"], or_else=" or a positive number")
        if len(self.views_) == 1:
            raise ValueError("there is one view: nothing to read it out from")
        tables = self._read(X, reset=False)[1]
        if not any(view.kind == "bernoulli" and view.name in tables for view in self.views_):
            raise ValueError("X has no view of bits: there is nothing to calibrate")
        if len(tables) == 1:
            raise ValueError(f"X holds only the view {next(iter(tables))!r}: give at least one other")
        weights = check_sample_weight(sample_weight, n_rows(tables))
        penalty = None if isinstance(l2, str) else check_real("l2", check_positive("l2", l2), low=1e-12, high=1e12)
        model, found, penalties = self._fitted(), {}, {}
        with threadpool_limits(limits=1, user_api="blas"):
            rows = distinct_rows(tables, weights, None)
            tables, w = rows.tables, rows.weights
            for view in self.views_:
                if view.place == "bernoulli" and view.name in tables:
                    rest = {name: table for name, table in tables.items() if name != view.name}
                    used = np.flatnonzero(~tables[view.name].missing)
                    if not len(used):
                        raise ValueError(f"no row with weight has view {view.name!r}: leave it out of X")
                    latents = model.infer(rest, n_jobs=self.n_jobs)[0]
                    bits = view.encoded(tables[view.name])
                    found[view.name], penalties[view.name] = fit_readout(latents[used], bits[used], w[used], penalty)
        self.readouts_, self.readout_l2_ = found, penalties
        return self

    def annotate(
        self,
        X: Any,
        view: str,
        *,
        method: str = "mean-field",
        calibrated: bool = False,
        n_sweeps: int = 200,
        random_state: Any = None,
    ) -> Array:
        """What is expected of one view given the others: p(view | the rest).

        Many correlated bits that are missing together make each other too sure: where the probabilities matter and not
        their order alone, calibrate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays
            What it holds of the view itself is not looked at; a dictionary or a data frame may lack it.
        view : str
            Its name.
        method : {"mean-field", "gibbs"}, default="mean-field"
            How bits and categories that are missing are found. A Gaussian view that alone is missing is exact.
        calibrated : bool, default=False
            Whether bits are read out of the latents by the regressions that `calibrate` has learnt.
        n_sweeps : int, default=200
            Of Gibbs sampling.
        random_state : int, RandomState instance or None
            Of Gibbs sampling.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            Expected values of a Gaussian view in its own units, probabilities of ones, or probabilities of the levels
            of all columns side by side. Of a chain probabilities of the cells of a document of a middling number of
            paragraphs, shape (n_samples, n_steps, n_words) where X is a dictionary.

        Raises
        ------
        ValueError
            If there is no such view, or no other.
        """
        check_is_fitted(self)
        fitted = self._view(view)
        if len(self.views_) == 1:
            raise ValueError(f"view {view!r} is the only one: there is no rest to annotate it from")
        check_choice("method", method, ("mean-field", "gibbs"))
        check_integer("n_sweeps", n_sweeps, low=1)
        tables = self._read(X, reset=False, but=view)[1]
        random = None
        if method == "gibbs":
            random = np.random.default_rng(int(check_random_state(random_state).randint(2**31)))
        model = self._fitted()
        latents, expected = model.infer(
            tables, n_jobs=None if random is not None else self.n_jobs, sweeps=n_sweeps, random=random
        )
        if calibrated:
            at = rows_of_views(self.views_)[view]
            expected[:, at] = read_out(latents, self._readout(view))
        return np.asarray(model.completed(fitted, latents, expected))

    def decode(self, H: Any, view: str) -> Array:
        """What latents say of a view: its expectation given them, p(view | h).

        Parameters
        ----------
        H : array-like of shape (n_samples, n_components)
            Latents, such as `transform` gives.
        view : str
            Its name.

        Returns
        -------
        ndarray
            As of `annotate`. The cells of a chain by forward-backward, bits with edges by mean field.
        """
        check_is_fitted(self)
        fitted = self._view(view)
        H = check_array(H, dtype=np.float64, input_name="H")
        if H.shape[1] != self.n_components_:
            raise ValueError(f"H must have a column for each of {self.n_components_} components; got {H.shape[1]}")
        with threadpool_limits(limits=1, user_api="blas"):
            return np.asarray(self._fitted().decoded(fitted, H))

    def _readout(self, view: str) -> Array:
        found: dict[str, Array] = getattr(self, "readouts_", {})
        if view not in found:
            raise ValueError(
                f"nothing was calibrated for view {view!r}: call calibrate(X) first (for views of bits without edges)"
            )
        return found[view]
