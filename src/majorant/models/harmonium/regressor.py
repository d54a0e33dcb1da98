"""A harmonium whose components predict a number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from majorant._numbers import briefly
from majorant._validation import (
    check_choice,
    check_real,
    check_sample_weight,
)
from majorant.models.harmonium.inference import SHAPES_WITH_TARGET
from majorant.models.harmonium.layout import (
    EpsilonInsensitive,
    Squared,
    Supervision,
    mean_and_scale,
    not_a_number,
    standardised_target,
)
from majorant.models.harmonium.supervised import SupervisedHarmonium
from majorant.models.harmonium.tables import Table, n_rows
from majorant.registry import ModelCard, register

Array = NDArray[np.float64]


@register(
    ModelCard(
        name="harmonium-regressor",
        title="multi-view harmonium regression",
        question="Which few numbers, common to several views, tell a rating?",
        kind="representation",
        size_parameter="n_components",
        part="component",
        objective_name="log-loss",
        objective_title="log-loss of every variable given the others and loss of the target, penalised",
        objective_attribute="objective_",
        estimates=("components_", "intercept_", "noise_variance_", "label_components_", "label_intercept_"),
        shapes=SHAPES_WITH_TARGET,
        objective_set_by=("cd_sweeps", "epsilon", "l2", "loss", "loss_weight", "method", "n_folds", "views"),
        needs_target=True,
    )
)
class HarmoniumRegressor(RegressorMixin, SupervisedHarmonium):  # type: ignore[misc]
    r"""Predict a number by a representation that several views share, learnt together with the number.

    To the objective of `Harmonium` is added

    .. math:: \frac{C}{D} \sum_d \ell(r_d) + \frac{\lambda}{2} |V|^2, \qquad
              \ell(r) = \max(|r| - \epsilon, 0) \text{ with smoothed corners, or } r^2 / 2,

    r the residual of the standardised target from :math:`V^\top m + c`, m the expected latents; it stays convex in J.
    Smoothing adds at most 0.14 to the loss of a row.
    With ``method="cd"`` the same loss is added to contrastive divergence: the large-margin regression of [1]_, whose
    multipliers are the slopes C l'(r) of the loss.

    Parameters
    ----------
    n_components, views
        See `Harmonium`.
    loss : {"epsilon_insensitive", "squared"}, default="epsilon_insensitive"
        Loss of support vector regression, or of least squares.
    epsilon : float, default=0.1
        Residuals up to this many standard deviations of y cost nothing (``loss="epsilon_insensitive"``).
    loss_weight : float or "auto", default=1000.0
        See `HarmoniumClassifier`.
    method, cd_sweeps, grow, init, n_init, max_iter, tol, verbose, random_state, n_jobs
        See `Harmonium`.
    l2 : "auto", float or dict, default="auto"
        :math:`\lambda`. "auto": see `Harmonium`; the largest value for which the held-out loss of the target is within
        one standard error of the smallest. No component is kept only where others are not better by more than one
        standard error of the difference; the prediction is then the same for all rows.
        A dict such as ``{"views": 0.01, "response": 1.0}`` has a penalty for W and another for V, which alone has one
        in [1]_; `l2_` and the two that follow are then of the views.
    n_folds : int, default=5
        Number of folds, 1 to 5, that are held out in turn to choose the penalty and the weight of the loss. With 1 the
        fit takes about a third of the time, and its penalty is often too large.

    Attributes
    ----------
    y_mean_, y_scale_ : float
        Mean and standard deviation of the target.
    label_components_, label_intercept_ : ndarray of shape (1, n_components), and (1,)
        V and c, for the standardised target.
    loss_weight_, loss_weight_path_
        See `HarmoniumClassifier`.
    components_, intercept_, noise_variance_, n_components_, rank_, l2_, largest_l2_, l2_path_
        See `Harmonium`.
    certificate_, objective_, views_, n_iter_, n_samples_, search_, trace_, n_features_in_, feature_names_in_
        See `Harmonium`.

    See Also
    --------
    Harmonium, HarmoniumClassifier

    References
    ----------
    .. [1] N. Chen, J. Zhu, F. Sun, E. Xing, "Large-margin predictive latent subspace learning for multiview data
       analysis", IEEE TPAMI, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> import majorant as mj
    >>> g = np.random.default_rng(0)
    >>> h = g.normal(size=(300, 1))
    >>> X = np.column_stack([h + 0.3 * g.normal(size=(300, 4)), h + g.normal(size=(300, 4)) > 0])
    >>> views = {"sizes": mj.Gaussian(slice(0, 4)), "bits": mj.Bernoulli(slice(4, 8))}
    >>> model = mj.HarmoniumRegressor(3, views=views).fit(X, 10 + 2 * h[:, 0])
    >>> bool(model.score(X, 10 + 2 * h[:, 0]) > 0.9)
    True
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        views: Any = None,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.1,
        loss_weight: float | str = 1000.0,
        method: str = "pseudo-likelihood",
        cd_sweeps: int = 5,
        l2: float | str | dict[str, float] = "auto",
        n_folds: int = 5,
        grow: bool = False,
        init: str = "svd",
        n_init: int | str = "auto",
        max_iter: int = 2000,
        tol: float = 1e-11,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.views = views
        self.loss = loss
        self.epsilon = epsilon
        self.loss_weight = loss_weight
        self.method = method
        self.cd_sweeps = cd_sweeps
        self.l2 = l2
        self.n_folds = n_folds
        self.grow = grow
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("loss", self.loss, ("epsilon_insensitive", "squared"))
        check_real("epsilon", self.epsilon, low=0.0, high=1e6)

    def _numbers(self, y: Any, tables: dict[str, Table]) -> Array:
        try:
            return self._checked_target(y, tables, dtype=np.float64)
        except (TypeError, ValueError) as error:
            odd = not_a_number(y)
            if odd is None:
                raise
            raise ValueError(f"y must hold numbers; got {briefly(odd)}. For labels take HarmoniumClassifier") from error

    def _target(self, y: Any, tables: dict[str, Table], weights: Array | None) -> NDArray[Any]:
        return standardised_target(self._numbers(y, tables), self.y_mean_, self.y_scale_, weights)

    def _learnt_target(self, y: Any, tables: dict[str, Table], sample_weight: Any) -> tuple[NDArray[Any], Supervision]:
        y = self._numbers(y, tables)
        weights = check_sample_weight(sample_weight, n_rows(tables))
        self.y_mean_, self.y_scale_ = mean_and_scale(y, weights)
        loss = Squared() if self.loss == "squared" else EpsilonInsensitive(float(self.epsilon))
        return self._target(y, tables, weights), self._supervision(loss)

    def predict(self, X: Any) -> Array:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        latents = self._fitted().infer(self._read(X, reset=False)[1], n_jobs=self.n_jobs)[0]
        scores = np.einsum("nk,k->n", latents, self.label_components_[0]) + self.label_intercept_[0]
        return np.asarray(self.y_mean_ + self.y_scale_ * scores)
