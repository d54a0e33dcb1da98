"""The estimator of a classifier by latent classes."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from majorant._frames import check_row_names
from majorant._numbers import counted
from majorant._order import ordered
from majorant._validation import (
    check_choice,
    check_csr,
    check_enough_rows,
    check_integer,
    check_positive,
    check_real,
    check_runs,
    check_sample_weight,
    levels_to_user,
    seed_of,
    validate_data,
)
from majorant.data.chunks import Chunks
from majorant.data.measure import empirical_measure
from majorant.data.storage import StoredRows, stored_rows
from majorant.engine.of_family import one
from majorant.engine.policies import BoundPolicy, check_bounds
from majorant.models.base import ACTIVE_SHARE, LatentVariableModel
from majorant.models.discriminative_latent_classes.contest import LatentClassContest, latent_class_contest
from majorant.models.discriminative_latent_classes.design import FitRows, in_units, rows_in_memory, unit_of_each
from majorant.models.discriminative_latent_classes.stream import rows_with_labels
from majorant.models.discriminative_latent_classes.summary import latent_class_summary
from majorant.models.discriminative_latent_classes.targets import read_targets, share_right
from majorant.models.kernel_features import KERNEL_SHAPES, FeatureMap, Kernel, check_kernel, embedding
from majorant.registry import ModelCard, register
from majorant.search.contestants import Found
from majorant.search.record import SearchReport
from majorant.solvers.logits import log_probabilities
from majorant.starts.given import given_assignments, pooled
from majorant.starts.simplex_program import RELAXATIONS
from majorant.summary import Summary

Array = NDArray[np.float64]
KERNEL_ATTRIBUTES = ("kernel_axes_", "landmarks_", "center_", "gamma_")
INITS = ("auto", "ball", *RELAXATIONS, "random")


@register(
    ModelCard(
        name="discriminative-latent-classes",
        title="latent-class classification",
        question="Which hidden classes do the features tell apart, and which label does each one give?",
        kind="classification",
        size_parameter="n_classes",
        part="latent class",
        objective_name="cost",
        objective_title="log-loss with its penalty",
        objective_attribute="objective_",
        estimates=("class_intercept_", "class_label_distribution_"),
        shapes={"class_intercept_": "k", "class_label_distribution_": "kc", "class_coef_": "km"} | KERNEL_SHAPES,
        objective_set_by=("alpha", "beta", "df", "gamma", "kernel", "n_kernel_components", "unlabelled_weight"),
        needs_target=True,
    )
)
class DiscriminativeLatentClasses(ClassifierMixin, LatentVariableModel):  # type: ignore[misc]
    r"""Classification through latent classes: features predict a hidden class, and the class predicts the label.

    With classes z, features x and labels y

    .. math:: p(z = k \mid x) \propto e^{w_k^\top x + b_k}, \qquad p(y = m \mid z = k) = \alpha_{km}, \qquad
              p(y \mid x) = \sum_k p(k \mid x)\, \alpha_{k y},

    so a label may be many groups of rows that have nothing else in common, which one linear boundary cannot tell from
    the rest. Minimised is

    .. math:: l(w, b, \alpha) = -\frac{1}{W} \sum_n \omega_n \log p(y_n \mid x_n) + \frac{\lambda}{2K} \|w\|^2

    over rows with weights :math:`\omega_n` of sum W. A class more costs nothing where it is not used, so with two
    labels and many features the best solution is that of logistic regression with :math:`C = 2K / (\lambda W)`.

    Parameters
    ----------
    n_classes : int, default=5
        Latent classes, K.
    init : {"auto", "ball", "relaxation", "independent-relaxations", "random"} or array, default="auto"
        Where fits begin. "auto": at the labels, at ball relaxations of the rows with and without their labels, and
        four times at seeds of k-means++ within the labels; the cheapest fit is kept. "ball": the ball relaxation alone.
        "relaxation": the low-rank program over simplices [2]_; "independent-relaxations": one a column. "random": seeds
        of k-means++. An array holds classes, 0 to K - 1, or probabilities of classes, (n_samples, n_classes).
    df : float, default=0.97
        Sets :math:`\lambda` by the degrees of freedom that ridge regression keeps with it,
        :math:`\sum_j s_j^2 / (s_j^2 + \lambda)` with :math:`s_j^2` the variances of the rows along their principal
        axes, as a share of their number: in (0, 1), and larger is less penalised. (Of more than 1000 columns, that of
        2000 rows.)
    alpha : float, optional
        :math:`\lambda` itself, positive and finite, in squared units of the features; `df` is then not used.
    kernel : None, "rbf" or callable, default=None
        Features that replace the columns: none, :math:`e^{-\gamma |x - l|^2}` with landmarks l, or
        ``kernel(X, L)``, a matrix of a positive semi-definite kernel. X must then be dense.
    n_kernel_components : int, default=100
        Kernel features, see `DiscriminativeClustering`.
    gamma : float, optional
        Of the RBF kernel; by default 1 / (n_features * variance of X).
    beta : float, default=1.0
        Inverse temperature of the classes given features and label, positive or infinite (each row in its best class).
        At 1 the cost is the log-loss above; otherwise rows without label cannot count.
    bounds : bound policy, optional
        How the bounds of the engine are chosen (`GibbsLimit`, `Tempered`, ...); by default the tightest ones, EM.
    unlabelled_weight : float, default=0.3
        :math:`\gamma`, what rows without label count for. Where there are any,
        :math:`\gamma\,[\mathrm{mean}_n H(p(\cdot \mid x_n)) - H(\mathrm{mean}_n\, p(\cdot \mid x_n))]` over all rows is
        added to the cost: boundaries then avoid dense regions. 0 ignores those rows, as it must where `beta`
        is not 1.
    n_init : "auto" or int, default="auto"
        Random starts of "auto" (4) and "random" (10), or starts of "ball" and of relaxations (1).
    max_iter : int, default=1000
        Largest number of iterations of EM, and of each L-BFGS after it: one, and three more where rows without label
        count. Of many rows at most 7 of EM come first, after which starts are compared; at most 20 come behind the
        first L-BFGS. With another `beta` than 1 all is EM.
    tol : float, default=1e-8
        L-BFGS stops where an iteration lowers the mean cost of a row by less than this, or than this share of it if it
        is above 1; EM where it can lower that by no more, or by no more than 1e-4 where L-BFGS follows.
    verbose : int, default=0
        1 shows the starts as they end, on stderr.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int, optional
        Threads that work on blocks of rows at a time; -1 for all processors. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Labels, in sorted order; column numbers where y was a table.
    class_coef_ : ndarray of shape (n_classes, n_features)
        w, of kernel features where there is a kernel. The class that holds most rows comes first.
    class_intercept_ : ndarray of shape (n_classes,)
        b, of sum zero.
    class_contrasts_ : ndarray of shape (n_classes, n_features), or None
        By how much a standard deviation of each feature raises the logarithm of the odds of each class against the
        average one: what speaks for a class, in units that can be compared. None with a kernel.
    class_label_distribution_ : ndarray of shape (n_classes, n_labels)
        :math:`\alpha`: rows of sum one, or the probability of each indicator.
    class_weights_ : ndarray of shape (n_classes,)
        Share of the rows in each class: the mean of p(z | x).
    n_active_classes_ : int
        Classes that hold more than 1 % of the rows.
    alpha_ : float
        :math:`\lambda`.
    logistic_c_ : float
        :math:`2K / (\lambda W)`: the C of the logistic regression that is penalised as much.
    objective_ : float
        W times the cost: a sum over rows.
    total_weight_ : float
        W, the weight of the rows with a label.
    n_samples_ : int
        Rows with weight.
    n_iter_ : int
        Iterations of the start that was kept, of EM and of L-BFGS.
    target_kind_ : {"labels", "probabilities", "indicators"}
        What y was.
    kernel_axes_, landmarks_, center_, gamma_
        With a kernel: ``kernel(X, landmarks_) @ kernel_axes_`` are the kernel features.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X had column names.
    search_ : SearchReport
        Every start, how many reached the best optimum, how far the second is.
    trace_ : Trace
        Cost and bound of every iteration of the start that was kept.

    See Also
    --------
    sklearn.linear_model.LogisticRegression : One class per label.
    majorant.solvers.softmax_regression : Its M-step.

    References
    ----------
    .. [1] A. Joulin, F. Bach, "A convex relaxation for weakly supervised classifiers", ICML 2012.
    .. [2] A. Joulin, F. Bach, J. Ponce, "Efficient optimization for discriminative latent class models", NIPS 2010.

    Examples
    --------
    Two labels, each in two opposite corners: four latent classes, where one boundary is no better than chance.

    >>> import numpy as np
    >>> import majorant as mj
    >>> g = np.random.default_rng(0)
    >>> corner = g.integers(0, 2, size=(200, 2))
    >>> X = 2 * corner - 1 + 0.3 * g.normal(size=(200, 2))
    >>> y = corner.sum(axis=1) % 2
    >>> model = mj.DiscriminativeLatentClasses(4, random_state=0).fit(X, y)
    >>> model.score(X, y)
    0.995
    >>> model.n_active_classes_
    4
    """

    kernel_axes_: Array

    def __init__(
        self,
        n_classes: int = 5,
        *,
        init: Any = "auto",
        df: float = 0.97,
        alpha: float | None = None,
        kernel: Kernel = None,
        n_kernel_components: int = 100,
        gamma: float | None = None,
        beta: float = 1.0,
        bounds: BoundPolicy | None = None,
        unlabelled_weight: float = 0.3,
        n_init: str | int = "auto",
        max_iter: int = 1000,
        tol: float = 1e-8,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.init = init
        self.df = df
        self.alpha = alpha
        self.kernel = kernel
        self.n_kernel_components = n_kernel_components
        self.gamma = gamma
        self.beta = beta
        self.bounds = bounds
        self.unlabelled_weight = unlabelled_weight
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Fewer latent classes than labels cannot tell the labels apart.
        tags.classifier_tags.poor_score = self.n_classes < 3
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the latent classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), Chunks or Dask collection
            Sparse rows stay sparse, unless they are fewer than their columns and at most 3000. A memory-mapped array
            larger than 64 MB, ``majorant.open_rows(path)`` and a Dask collection are read block by block, starts then
            being made on a sample; without `kernel` and with one label per row, which may come with the rows.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels, numbers or text, NaN or None where a row has none. Or probabilities of labels: floats, rows of sum
            one; a row counts as its label drawn from them. Or indicators, zeros and ones, of labels of which a row may
            have any number: they are independent given the class. One label alone is refused: it tells of no class.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights, not all zero. A label whose rows have no weight is not learnt.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data, labels, weights or parameters cannot be used; the message says what to change.
        """
        check_row_names({"X": X, "init": self.init})
        with self._all_or_nothing():
            self._check_parameters()
            for name in KERNEL_ATTRIBUTES:
                self.__dict__.pop(name, None)
            seed = seed_of(self.random_state)
            source = stored_rows(X)
            if source is not None:
                self._fit_stored(source, y, sample_weight, seed)
                return self
            X = self._check_rows(X, reset=True)
            n = X.shape[0]
            check_enough_rows(n, "n_classes", self.n_classes, "latent class")
            weights = check_sample_weight(sample_weight, n)
            targets = read_targets(y, n, weights)
            # The sums of BLAS depend on how many threads it may use.
            with threadpool_limits(limits=1, user_api="blas"):
                X = self._embedded(X, weights, seed)
                rows = rows_in_memory(X, targets, weights, self.n_jobs)
                if self.beta != 1 and self.unlabelled_weight > 0 and rows.design.has_unlabelled:
                    raise ValueError(
                        f"rows without label count only with beta=1; got beta={self.beta:g} and "
                        f"unlabelled_weight={self.unlabelled_weight:g}: set unlabelled_weight=0 to leave them out"
                    )
                if not isinstance(init := self.init, str):
                    given = given_assignments(init, n, self.n_classes, "class", normalised=True)[targets.rows]
                    init = pooled(given, targets.weights_under(weights), rows.design.entry, len(rows.design.weights))
                bounds = None if self.bounds is None else self.bounds.renumbered(unit_of_each(rows.design, targets))
                self._find(rows, init, bounds, seed)
        return self

    def _fit_stored(self, source: StoredRows, y: Any, sample_weight: Any, seed: int) -> None:
        """Fit rows that are read block by block, each with a label."""
        if self.kernel is not None or not isinstance(self.init, str):
            asked = "a kernel" if self.kernel is not None else "init as an array"
            raise ValueError(f"{asked} needs all rows at once: read them into memory, or fit a sample of them")
        check_enough_rows(self._check_stored(source, reset=True), "n_classes", self.n_classes, "latent class")
        source.weigh(sample_weight)
        with threadpool_limits(limits=1, user_api="blas"):
            self._find(rows_with_labels(source, y, seed, self.n_jobs), self.init, self.bounds, seed)

    def _check_parameters(self) -> None:
        check_integer("n_classes", self.n_classes, low=1)
        if self.alpha is not None:
            check_positive("alpha", self.alpha, finite=True)
        elif not 0 < check_real("df", self.df, low=0.0, high=1.0) < 1:
            raise ValueError(f"df must lie between 0 and 1, without them; got {self.df!r}")
        check_kernel(self.kernel, self.n_kernel_components, self.gamma)
        check_positive("beta", self.beta)
        check_bounds(self.bounds)
        check_real("unlabelled_weight", self.unlabelled_weight, low=0.0, high=1e6)
        check_runs(self)
        if isinstance(self.init, str):
            check_choice("init", self.init, INITS, or_else=", or an array of classes")

    def _embedded(self, X: Any, weights: Array | None, seed: int) -> Any:
        """Return the rows, transformed to the coordinates of the classes."""
        if self.kernel is None:
            return X
        measure = empirical_measure(X, weights)
        rows, shares = measure.restore(measure.points), measure.weights / measure.total_weight
        found = embedding(rows, shares, self.kernel, self.gamma, self.n_kernel_components, np.random.default_rng(seed))
        assert found.to_features is not None
        self.kernel_axes_, self.landmarks_ = found.to_features, found.map.landmarks
        self.center_, self.gamma_ = found.map.center, float(found.map.gamma)
        return self._features(X)

    def _features(self, X: Any) -> Any:
        """Return the features of rows: their columns, or kernel features."""
        if self.kernel is None:
            return X
        seen = FeatureMap(self.center_, self.kernel, self.gamma_, self.landmarks_)
        return np.ascontiguousarray(np.einsum("nm,mp->np", seen.of(X), self.kernel_axes_))

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        source = None if reset else stored_rows(X)
        if source is not None:
            self._check_stored(source, reset=False)
            return source
        sparse = "csr" if self.kernel is None else False
        X = validate_data(self, X, reset=reset, accept_sparse=sparse, dtype=[np.float64, np.float32], order="C")
        check_csr(X)
        return X

    def _find(self, rows: FitRows, init: str | Array, bounds: BoundPolicy | None, seed: int) -> None:
        """Race the starts and keep the best end."""
        measure = rows.design.measure
        if measure.n_points < self.n_classes:
            warnings.warn(
                f"X has {counted(measure.n_points, 'distinct row')} for n_classes={self.n_classes}: some get none",
                ConvergenceWarning,
                stacklevel=levels_to_user(),
            )
        unit = measure.scale
        penalty = rows.penalty_of_df(self.df) if self.alpha is None else float(self.alpha) * unit * unit
        draws = np.random.default_rng(seed)
        contest = latent_class_contest(
            rows,
            self.n_classes,
            penalty,
            init,
            self.n_init,
            beta=float(self.beta),
            gamma=float(self.unlabelled_weight),
            bounds=bounds,
            max_iter=self.max_iter,
            tol=self.tol,
            draws=draws,
        )
        self._keep(contest, contest.found(draws, self.verbose), rows, penalty)

    def _keep(self, contest: LatentClassContest, found: Found[Any], rows: FitRows, penalty: float) -> None:
        """Set the fitted attributes, the class that holds most rows first."""
        design, theta = rows.design, one(found.best.theta)
        total = design.total_weight
        mass = contest.family.class_weights(theta, design.labelled) / total
        coef, intercept = design.outward(theta.theta)
        order = ordered(-mass, theta.alpha)
        self.target_kind_, self.classes_ = rows.kind, rows.classes
        self.class_coef_ = np.ascontiguousarray(coef[order])
        self.class_contrasts_ = None
        if self.kernel is None:
            average = np.einsum("k,kp->p", mass[order], self.class_coef_)
            self.class_contrasts_ = np.asarray((self.class_coef_ - average) * rows.deviations)
        self.class_intercept_ = intercept[order] - intercept.mean()
        self.class_label_distribution_ = np.ascontiguousarray(theta.alpha[order])
        self.class_weights_ = mass[order]
        self.n_active_classes_ = int(np.sum(mass > ACTIVE_SHARE))
        self.alpha_ = in_units(penalty, design.measure.scale)
        self.logistic_c_ = 2 * self.n_classes / (self.alpha_ * total * design.unit)
        self.objective_ = found.best.objective * design.unit
        self.n_samples_, self.total_weight_ = rows.n_rows, total * design.unit
        self.search_ = SearchReport(found.records, "cost", "min", note=found.note).scaled(design.unit)
        self.trace_ = contest.trace(found.best).scaled(design.unit)
        self.n_iter_ = len(self.trace_)

    # Predictions

    def _by_block(self, X: Any, f: Any, width: int) -> Array:
        theta = np.vstack([self.class_coef_.T, self.class_intercept_])
        return Chunks(X, n_jobs=self.n_jobs).map_rows(
            lambda block: f(np.exp(log_probabilities(self._features(block.columns[0]), theta))), (width,)
        )

    def class_proba(self, X: Any) -> Array:
        """Return the probability of each latent class given the features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self._by_block(self._check_rows(X, reset=False), lambda p: p, self.n_classes)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each label, the latent class summed out.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Rows of sum one, unless y was a table of indicators: each label then has a probability of its own.
        """
        check_is_fitted(self)
        alpha, X = self.class_label_distribution_, self._check_rows(X, reset=False)
        return self._by_block(X, lambda p: np.minimum(np.einsum("ik,km->im", p, alpha), 1.0), alpha.shape[1])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Of a table of indicators, shape (n_samples, n_labels): ones where a label is more probable than not.
        """
        p = self.predict_proba(X)
        if self.target_kind_ == "indicators":
            return (p > 0.5).astype(np.intp)
        return np.asarray(self.classes_[p.argmax(axis=1)])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on the rows with a label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            As in `fit`; rows without label do not count. A row of probabilities is right with the probability of the
            predicted label. A row of indicators is right if all of them are.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float

        Raises
        ------
        ValueError, TypeError
            If no row with weight has a label, or y is not what the fit was given.

        Notes
        -----
        scikit-learn splits labels by their classes in `cross_val_score`, and refuses NaN among them: give it
        ``cv=KFold(5)``, or None in place of NaN.
        """
        found = self.predict(X)
        if y is None and (source := stored_rows(X)) is not None:
            source.aim(None)
            y = source.all_of_target()
        return share_right(found, y, check_sample_weight(sample_weight, len(found)), self.target_kind_, self.classes_)

    def _summary(self) -> Summary:
        return latent_class_summary(self)
