"""Harmoniums whose components predict a target: a class, or a number."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from majorant._numbers import briefly
from majorant._validation import (
    check_auto,
    check_choice,
    check_real,
    check_sample_weight,
    levels_to_user,
    refuse_missing_labels,
    refuse_mixed,
)
from majorant.models.base import of_the_same_rows
from majorant.models.harmonium.base import HarmoniumBase
from majorant.models.harmonium.inference import SHAPES, has_probabilities
from majorant.models.harmonium.layout import (
    EpsilonInsensitive,
    Hinge,
    Loss,
    Squared,
    Supervision,
    mean_and_scale,
    not_a_number,
    penalties,
    standardised_target,
)
from majorant.models.harmonium.tables import Table
from majorant.models.margin import learnt_classes
from majorant.registry import ModelCard, register

Array = NDArray[np.float64]
Target = tuple[NDArray[Any], Loss | None, int]
"""The target as fits use it, the loss of its scores, and the number of levels of a label that is modelled instead."""

LOSS_WEIGHTS = (1000.0, 100.0, 10.0, 1.0)
"""Weights of the loss that ``loss_weight="auto"`` compares."""
SHARED: dict[str, Any] = {
    "size_parameter": "n_components",
    "part": "component",
    "objective_name": "log-loss",
    "objective_attribute": "objective_",
    "estimates": ("components_", "intercept_", "noise_variance_", "label_components_", "label_intercept_"),
    "shapes": {**SHAPES, "label_components_": "lk", "label_intercept_": "l", "y_mean_": "", "y_scale_": ""},
    "needs_target": True,
}
"""What the cards of both say."""


class SupervisedHarmonium(HarmoniumBase):
    """A harmonium with a target."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_auto("loss_weight", self.loss_weight)

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
            target, loss, n_labels = self._learnt_target(y, tables, sample_weight)
            weight = check_auto("loss_weight", self.loss_weight)
            compared = LOSS_WEIGHTS if weight is None else ()
            supervision = Supervision(loss, n_labels, weight or LOSS_WEIGHTS[0], compared, penalties(self.l2)[1])
            found = self._fit(views, tables, target, sample_weight=sample_weight, supervision=supervision)
            self.loss_weight_ = self.supervision_.weight
            self.loss_weight_path_ = np.array(found.weight_path).reshape(-1, 2)
        return self

    def _learnt_target(self, y: Any, tables: dict[str, Table], sample_weight: Any) -> Target:
        """Check y, keep its labels or its units as fitted attributes, and encode it; see `Target`."""
        raise NotImplementedError(f"{type(self).__name__} must say what its target is")

    def _checked_target(self, y: Any, tables: dict[str, Table], **options: Any) -> NDArray[Any]:
        """Check that y has one value per row."""
        if y is None:
            raise ValueError(f"This {type(self).__name__} requires y to be passed, but the target y is None")
        y = column_or_1d(check_array(y, ensure_2d=False, input_name="y", **options), warn=True)
        check_consistent_length(next(iter(tables.values())).missing, y)
        return np.asarray(y)


@register(
    ModelCard(
        name="harmonium-classifier",
        title="multi-view harmonium classification",
        question="Which few numbers, common to several views, tell the labels apart?",
        kind="classification",
        objective_title="log-loss of every variable given the others and loss of the labels, penalised",
        objective_set_by=("cd_sweeps", "l2", "loss", "loss_weight", "method", "n_folds", "views"),
        **SHARED,
    )
)
class HarmoniumClassifier(ClassifierMixin, SupervisedHarmonium):  # type: ignore[misc]
    r"""Classify rows by a representation that several views share, learnt together with the labels.

    The model is that of `Harmonium`. ``loss="hinge"`` adds to its objective a large-margin loss of scores
    :math:`s_y = V_y^\top m + c_y` of the expected latents m,

    .. math:: \frac{C}{D} \sum_d \max_y (1[y \ne y_d] + s_y - s_{y_d}) + \frac{\lambda}{2} |V|^2,

    with the maximum smoothed (by :math:`0.1 \log \sum \exp(\cdot / 0.1)`, larger by at most 0.1 times the
    logarithm of the number of labels): still convex in J, of which V m is a block.
    With ``loss="log"`` the label is one more categorical view of weight C, and :math:`p(y \mid x, z)` is a softmax in
    closed form.

    With ``method="cd"`` the two are the large-margin and tri-wing harmoniums of [1]_: the same loss added to
    contrastive divergence, with joint descent in all parameters where the paper alternates between a support vector
    machine and the rest; and the label a view of the divergence, with C - 1 times its conditional log-loss added.

    Parameters
    ----------
    n_components, views
        See `Harmonium`.
    loss : {"hinge", "log"}, default="hinge"
        Large margin, or likelihood of the label.
    loss_weight : float or "auto", default=1000.0
        C, of little influence once the loss outweighs the log-likelihood of a row. "auto": 1000, replaced by 100, 10
        and 1 in turn, each at its own penalty, if the held-out loss falls by more than 3 %; small ones help with noisy
        rows. With ``method="cd"`` and ``loss="log"`` at least 1, which is the tri-wing harmonium itself.
    method, cd_sweeps, n_folds, grow, init, n_init, max_iter, tol, verbose, random_state, n_jobs
        See `Harmonium`.
    l2 : "auto", float or dict, default="auto"
        :math:`\lambda`. "auto": see `Harmonium`; the largest value for which the held-out loss of the labels is within
        one standard error of the smallest. No component is kept only where others are not better by more than one
        standard error of the difference; the labels' shares are then the prediction.
        A dict such as ``{"views": 0.01, "response": 1.0}`` has a penalty for W and another for V, which alone has one
        in [1]_; `l2_` and the two that follow are then of the views.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Labels, in sorted order.
    label_components_, label_intercept_ : ndarray of shape (n_labels, n_components), and (n_labels,)
        V and c.
    label_shares_ : ndarray of shape (n_labels,)
        Frequencies of the labels, with ``loss="log"``.
    loss_weight_ : float
        C.
    loss_weight_path_ : ndarray of shape (n_tried, 2)
        The weights that were tried, and the held-out loss of each at its own penalty; empty if none was chosen.
    components_, intercept_, noise_variance_, n_components_, rank_, l2_, largest_l2_, l2_path_
        See `Harmonium`.
    certificate_, objective_, views_, n_iter_, n_samples_, search_, trace_, n_features_in_, feature_names_in_
        See `Harmonium`.

    See Also
    --------
    Harmonium, HarmoniumRegressor

    References
    ----------
    .. [1] N. Chen, J. Zhu, F. Sun, E. Xing, "Large-margin predictive latent subspace learning for multiview data
       analysis", IEEE TPAMI, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> import majorant as mj
    >>> g = np.random.default_rng(0)
    >>> y = g.integers(0, 3, 300)
    >>> bits = g.random((300, 12)) < np.where(np.arange(12) % 3 == y[:, None], 0.7, 0.2)
    >>> sizes = y[:, None] + g.normal(size=(300, 2))
    >>> views = {"bits": mj.Bernoulli(), "sizes": mj.Gaussian()}
    >>> model = mj.HarmoniumClassifier(4, views=views, loss="log").fit({"bits": bits, "sizes": sizes}, y)
    >>> bool(model.score({"bits": bits, "sizes": sizes}, y) > 0.85)
    True
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        views: Any = None,
        loss: str = "hinge",
        loss_weight: float | str = 1000.0,
        method: str = "pseudo-likelihood",
        cd_sweeps: int = 5,
        l2: float | str | dict[str, float] = "auto",
        n_folds: int = 1,
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
        check_choice("loss", self.loss, ("hinge", "log"))
        too_small = not isinstance(self.loss_weight, str) and self.loss_weight < 1
        if self.method == "cd" and self.loss == "log" and too_small:
            raise ValueError(
                "method='cd' with loss='log' counts the label as a view once at least: give loss_weight=1 or more; "
                f"got {briefly(self.loss_weight)}"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self.n_components < 2  # one direction cannot tell three labels apart
        return tags

    def _labels(self, y: Any, tables: dict[str, Table]) -> NDArray[Any]:
        if y is not None:
            refuse_missing_labels(np.asarray(y))
            refuse_mixed("y", np.asarray(y))
        return self._checked_target(y, tables, dtype=None)

    def _target(self, y: Any, tables: dict[str, Table], weights: Array | None) -> NDArray[Any]:
        number = {label: i for i, label in enumerate(self.classes_.tolist())}
        labels = self._labels(y, tables).tolist()
        codes = np.array([number.get(label, -1) for label in labels], dtype=np.intp)
        unknown = np.flatnonzero(codes < 0 if weights is None else (codes < 0) & (weights > 0))
        if len(unknown):
            raise ValueError(
                f"y has the label {labels[unknown[0]]!r}, which the fit did not have; known are {list(number)[:10]}"
            )
        return np.maximum(codes, 0)

    def _learnt_target(self, y: Any, tables: dict[str, Table], sample_weight: Any) -> Target:
        y = self._labels(y, tables)
        check_classification_targets(y)
        weights = check_sample_weight(sample_weight, len(y))
        counted = np.ones(len(y)) if weights is None else weights
        self.classes_, codes = learnt_classes(y, counted)
        counts = np.bincount(codes[counted > 0])
        if (counts == 1).any() and len(y) > 2 * len(counts):
            warnings.warn(
                f"label {self.classes_.tolist()[counts.argmin()]!r} is that of one row only: it is hardly learnt",
                ConvergenceWarning,
                stacklevel=levels_to_user(),
            )
        n, target = len(self.classes_), self._target(y, tables, weights)
        return (target, Hinge(n), 0) if self.loss == "hinge" else (target, None, n)

    def _scores(self, X: Any) -> Array:
        tables, model = self._read(X, reset=False)[1], self._fitted()
        latents, expected = model.infer(tables, n_jobs=self.n_jobs)
        if model.layout.has_label:
            least = np.finfo(np.float64).tiny  # scores of rows far from all others are finite
            return np.asarray(np.log(np.maximum(expected[:, model.label], least)))
        return np.asarray(np.einsum("nk,tk->nt", latents, self.label_components_) + self.label_intercept_)

    def decision_function(self, X: Any) -> Array:
        """Compute the scores of the labels; with ``loss="log"`` the logarithms of their probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays

        Returns
        -------
        ndarray of shape (n_samples, n_labels), or (n_samples,)
            For two labels, the score of the second minus that of the first.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label with the largest score.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    @available_if(has_probabilities)  # type: ignore[untyped-decorator]
    @of_the_same_rows
    def predict_proba(self, X: Any) -> Array:
        """Compute the probabilities of labels given the views, exact if no discrete view is missing (``loss="log"``).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
        """
        return np.exp(self._scores(X))


@register(
    ModelCard(
        name="harmonium-regressor",
        title="multi-view harmonium regression",
        question="Which few numbers, common to several views, tell a rating?",
        kind="representation",
        objective_title="log-loss of every variable given the others and loss of the target, penalised",
        objective_set_by=("cd_sweeps", "epsilon", "l2", "loss", "loss_weight", "method", "n_folds", "views"),
        **SHARED,
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

    def _learnt_target(self, y: Any, tables: dict[str, Table], sample_weight: Any) -> Target:
        y = self._numbers(y, tables)
        weights = check_sample_weight(sample_weight, len(y))
        self.y_mean_, self.y_scale_ = mean_and_scale(y, weights)
        loss = Squared() if self.loss == "squared" else EpsilonInsensitive(float(self.epsilon))
        return self._target(y, tables, weights), loss, 0

    def predict(self, X: Any) -> Array:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        latents = self._fitted().infer(self._read(X, reset=False)[1], n_jobs=self.n_jobs)[0]
        scores = np.einsum("nk,k->n", latents, self.label_components_[0]) + self.label_intercept_[0]
        return np.asarray(self.y_mean_ + self.y_scale_ * scores)
