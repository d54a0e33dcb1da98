"""A harmonium whose components predict a class."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from majorant._numbers import briefly
from majorant._validation import (
    check_choice,
    check_sample_weight,
    levels_to_user,
    refuse_missing_labels,
    refuse_mixed,
)
from majorant.models.base import of_the_same_rows
from majorant.models.harmonium.inference import SHAPES_WITH_TARGET, has_probabilities
from majorant.models.harmonium.layout import (
    Hinge,
    Supervision,
)
from majorant.models.harmonium.supervised import SupervisedHarmonium
from majorant.models.harmonium.tables import Table
from majorant.models.margin import learnt_classes
from majorant.registry import ModelCard, register

Array = NDArray[np.float64]


@register(
    ModelCard(
        name="harmonium-classifier",
        title="multi-view harmonium classification",
        question="Which few numbers, common to several views, tell the labels apart?",
        kind="classification",
        size_parameter="n_components",
        part="component",
        objective_name="log-loss",
        objective_title="log-loss of every variable given the others and loss of the labels, penalised",
        objective_attribute="objective_",
        estimates=("components_", "intercept_", "noise_variance_", "label_components_", "label_intercept_"),
        shapes=SHAPES_WITH_TARGET,
        objective_set_by=("cd_sweeps", "l2", "loss", "loss_weight", "method", "n_folds", "views"),
        needs_target=True,
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

    def _learnt_target(self, y: Any, tables: dict[str, Table], sample_weight: Any) -> tuple[NDArray[Any], Supervision]:
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
        n = len(self.classes_)
        supervision = self._supervision(Hinge(n)) if self.loss == "hinge" else self._supervision(None, n)
        return self._target(y, tables, weights), supervision

    def _scores(self, X: Any) -> Array:
        tables = self._read(X, reset=False)[1]
        model = self._fitted()
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
        check_is_fitted(self)
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
        check_is_fitted(self)
        return np.asarray(self.classes_[self._scores(X).argmax(axis=1)])

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
        check_is_fitted(self)
        return np.exp(self._scores(X))
