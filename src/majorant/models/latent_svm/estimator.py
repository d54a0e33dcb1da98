"""Latent support vector machines, as scikit-learn's users meet them."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from majorant._validation import (
    check_choice,
    check_integer,
    check_positive,
    check_real,
    check_runs,
    check_sample_weight,
)
from majorant.data.chunks import Block
from majorant.engine.loop import Solution
from majorant.engine.policies import BoundPolicy, check_bounds
from majorant.models.latent_svm.bags import Samples, canonical_order, read_samples
from majorant.models.latent_svm.search import NAMED, LatentSVMSearch
from majorant.models.latent_svm.summary import latent_svm_summary
from majorant.models.margin import (
    Found,
    MarginClassifier,
    Weights,
    code_of_each,
    label_costs,
    learnt_classes,
    vanishes,
)
from majorant.registry import ModelCard, register
from majorant.search.record import SearchReport
from majorant.solvers.structural_svm import SOLVERS
from majorant.solvers.structural_svm.bags import BagProblem, BagSet
from majorant.summary import Summary

FORMS = ("class-specific", "shared")


@register(
    ModelCard(
        name="latent-svc",
        title="latent SVM",
        question="Which class is each sample, and which of its regions shows it?",
        kind="classification",
        size_parameter=None,
        part="class",
        objective_name="objective",
        objective_title="mean latent hinge loss and penalty",
        objective_attribute="objective_",
        objective_set_by=("alpha", "fit_intercept", "form", "intercept_scaling", "label_cost"),
        needs_target=True,
    )
)
class LatentSVC(MarginClassifier):
    r"""Classification of samples that are bags of regions: which region shows the class is never observed.

    A sample :math:`x_i` has regions :math:`x_{iz}`, rows of features: windows of an image, instances of a bag, segments
    of a recording. A class scores a sample on the region that suits it best, and the weights minimise

    .. math:: F(w) = \frac{\alpha}{2} |w|^2 + \sum_i c_i \Bigl[ \max_{y, z} \bigl(\langle w_y, x_{iz} \rangle +
              \Delta(y_i, y)\bigr) - \max_z \langle w_{y_i}, x_{iz} \rangle \Bigr],

    where :math:`c_i` are the sample weights divided by their sum. Fixing :math:`z` in the last term gives a convex
    upper bound, which is solved to a known duality gap; the bound policy says how :math:`z` is chosen from one bound to
    the next (the tightest bound: the concave-convex procedure).

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the penalty. Weights grow as it falls.
    latent_init : {"annealed", "first", "center", "random"} or array of shape (n_samples,), default="annealed"
        Regions with which the first bound begins. "annealed" needs none: scores are first the mean over all regions, a
        convex problem, and turn into the maximum along a path of temperatures. The others are the first region of each
        sample, the middle one, a random one, or those given.
    form : {"class-specific", "shared"}, default="class-specific"
        "class-specific": every class has weights and chooses its own region. "shared": two classes, of which only the
        second (in sorted order) has weights; a sample belongs to it if its best region scores above zero
        (multiple-instance learning, MI-SVM).
    label_cost : array-like of shape (n_classes, n_classes), optional
        :math:`\Delta`, what a prediction (second axis) costs where another class is right (first axis), classes in
        sorted order; not negative, and zero on the diagonal. By default 1 for every mistake.
    bounds : bound policy, optional
        Such as ``mj.GibbsLimit()``. By default the tightest bounds after an annealed start, ``mj.GibbsLimit()`` after
        other starts.
    solver : {"dcd", "cutting-plane", "bcfw"}, default="dcd"
        How a bound is minimised: dual coordinate descent on cached planes, one-slack cutting planes, or
        block-coordinate Frank-Wolfe. They reach the same minimum; "bcfw" keeps a vector of weights for every sample.
    fit_intercept : bool, default=True
        Whether regions get a constant feature, whose weights are penalised like the others.
    intercept_scaling : float, default=1.0
        Value of the constant feature: the larger it is, the less the intercept is penalised.
    n_init : int, default=1
        Starts, of which the best is kept: the first one as `latent_init` says, the others with random regions. Where
        every sample has one region the problem is convex, and there is one start.
    max_iter : int, default=100
        Largest number of bounds, exploring and then descending.
    tol : float, default=1e-3
        The fit ends when the objective falls by less than this share of itself. Each bound is solved to a duality gap
        of half of that.
    verbose : int, default=0
        1 shows the starts as they end, on stderr.
    random_state : int, RandomState instance or None, default=None
        Seed of random starts, of the policy's draws and of the order in which the solver visits samples.
    n_jobs : int, optional
        Threads of a pass over the samples; -1 for all processors. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels that have samples with weight, in sorted order.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) in the shared form
    intercept_ : ndarray of shape (n_classes,) or (1,)
    latent_ : ndarray of shape (n_samples,)
        The region of each sample that its own class is scored on, by its position in the sample; -1 where that class
        has no weight. In the shared form it is the one that scores highest, whichever class the sample has.
    objective_ : float
        :math:`F(w)`.
    gap_ : float
        The last convex bound may be this far above its minimum, at most.
    changed_ : float
        Share of the samples whose region is another one than at the start.
    confusion_ : ndarray of shape (n_classes, n_classes)
        Weight of the samples of each class (first axis) that are predicted as each (second axis).
    n_iter_ : int
        Bounds that were minimised.
    n_passes_ : int
        Passes over the samples in all: of the start, of the solver and of the bounds.
    n_regions_ : int
        Regions of the samples with weight.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X was a table with column names.
    search_ : SearchReport
        Every start, how many reached the best optimum, how far the second is. Where every sample has one region the
        problem is convex, and its `proved_bound` is proved.
    trace_ : Trace
        Objective and bound of every iteration, and which share of the latent values was not the tightest bound's.

    See Also
    --------
    sklearn.svm.LinearSVC : One region a sample.
    majorant.GibbsLimit : Random valid bounds.

    References
    ----------
    .. [1] S. N. Parizi, K. He, S. Sclaroff, P. Felzenszwalb, "Generalized Majorization-Minimization", section 5.2.
    .. [2] C.-N. J. Yu, T. Joachims, "Learning structural SVMs with latent variables", ICML 2009.
    .. [3] S. Andrews, I. Tsochantaridis, T. Hofmann, "Support vector machines for multiple-instance learning", 2002.

    Examples
    --------
    Two classes; in each sample one of four regions shows the class, the others are noise:

    >>> import numpy as np, majorant as mj
    >>> random = np.random.default_rng(0)
    >>> X, y = random.normal(size=(60, 4, 2)), np.arange(60) % 2
    >>> place = random.integers(0, 4, 60)
    >>> X[np.arange(60), place] += np.where(y[:, None] == 1, 5, -5)
    >>> model = mj.LatentSVC(0.01, random_state=0).fit(X, y)
    >>> float(model.score(X, y)), float(np.mean(model.latent_ == place))
    (1.0, 1.0)

    The same as a table of regions that names the sample of each row:

    >>> bags = np.repeat(np.arange(60), 4)
    >>> float(model.score(X.reshape(240, 2), y, bags=bags))
    1.0
    """

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        latent_init: Any = "annealed",
        form: Literal["class-specific", "shared"] = "class-specific",
        label_cost: Any = None,
        bounds: BoundPolicy | None = None,
        solver: Literal["dcd", "cutting-plane", "bcfw"] = "dcd",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-3,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.latent_init = latent_init
        self.form = form
        self.label_cost = label_cost
        self.bounds = bounds
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        tags.classifier_tags.multi_class = self.form != "shared"
        return tags

    def fit(self, X: Any, y: Any, *, bags: Any = None, sample_weight: Any = None) -> Self:
        """Find the weights.

        Parameters
        ----------
        X : array-like
            The regions, as one of

            - a table of shape (n_regions, n_features), dense or sparse, with `bags`; without it every row is a sample,
            - a list of tables (regions, n_features), one a sample,
            - an array of shape (n_samples, regions, n_features), in which rows of NaN behind the others are no regions.
        y : array-like of shape (n_samples,)
            Labels: numbers or text. With `bags` also one a row, the same in all rows of a sample.
        bags : array-like of shape (n_regions,), optional
            The sample of each row. Samples are counted in the order in which they first appear.
        sample_weight : array-like, optional
            Nonnegative weights, not all zero, in the form of `y`. A label whose samples have no weight is not learnt.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data, labels, weights or parameters cannot be used; the message says what to change.
        """
        with self._all_or_nothing():
            self._check_parameters()
            random = check_random_state(self.random_state)
            samples = read_samples(self, X, bags, reset=True)
            labels = samples.labels(y, type(self).__name__, "sample")
            weights = self._weights(samples, sample_weight)
            self.classes_, codes = learnt_classes(labels, weights)
            cost = self._cost(labels)
            given = self._given_latents(samples)
            unit = weights.max()  # equal weights are then exactly equal to none, however large they are
            order, merged, positions = canonical_order(samples, codes, weights / unit, given)
            problem = BagProblem(self._bag_set(samples, codes, order), cost, self.n_jobs)
            search = LatentSVMSearch(
                self.alpha,
                self.latent_init,
                self.bounds if self.bounds is None else self.bounds.renumbered(positions),
                self.solver,
                self.n_init,
                self.max_iter,
                self.tol,
                self.verbose,
                self.n_jobs,
            )
            shares = merged / merged.sum()
            found = search.find(problem, shares, None if given is None else given[order], int(random.randint(2**31)))
            self._keep(problem, found)
            self._keep_samples(problem, samples, labels, codes, unit * merged, positions, found)
            self._warn(samples, found.solution)
        return self

    def _check_parameters(self) -> None:
        check_positive("alpha", self.alpha)
        check_real("alpha", self.alpha, low=1e-12, high=1e12)
        if isinstance(self.latent_init, str):
            check_choice("latent_init", self.latent_init, NAMED, or_else=", or an array")
        check_choice("form", self.form, FORMS)
        check_bounds(self.bounds)
        check_choice("solver", self.solver, list(SOLVERS))
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept must be True or False; got {self.fit_intercept!r}")
        check_positive("intercept_scaling", self.intercept_scaling)
        check_real("intercept_scaling", self.intercept_scaling, high=1e6)
        check_integer("n_init", self.n_init, low=1)
        check_runs(self)

    def _weights(self, samples: Samples, sample_weight: Any) -> NDArray[np.float64]:
        if sample_weight is not None and np.asarray(sample_weight).ndim == 1 and samples.of_row is not None:
            sample_weight = samples.one_each(sample_weight, "sample_weight")
        weights = check_sample_weight(sample_weight, len(samples))
        return np.ones(len(samples)) if weights is None else weights

    def _cost(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        """Costs of the labels that are learnt."""
        n = len(self.classes_)
        if self.form == "shared" and n != 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass. "
                f'form="shared" is for two classes, a sample belonging to the second one or not; got {n}. '
                'Use form="class-specific"'
            )
        return label_costs(self.label_cost, labels, self.classes_)

    def _given_latents(self, samples: Samples) -> NDArray[np.int32] | None:
        if isinstance(self.latent_init, str):
            return None
        given = np.asarray(self.latent_init)
        if given.shape != (len(samples),) or given.dtype.kind not in "iu":
            got = f"shape {given.shape} of {given.dtype}" if given.ndim else repr(self.latent_init)
            raise ValueError(
                f"latent_init must be one of {', '.join(map(repr, NAMED))}, or one whole number a sample, shape "
                f"({len(samples)},); got {got}"
            )
        outside = (given < 0) | (given >= samples.counts)
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise ValueError(
                f"latent_init names region {given[at]} of sample {samples.names[at]!s}, which has {samples.counts[at]} "
                "(counted from 0)"
            )
        return given.astype(np.int32)

    def _bag_set(self, samples: Samples, codes: NDArray[np.int32], order: NDArray[np.intp]) -> BagSet:
        return BagSet(
            samples.rows,
            samples.starts[order],
            samples.counts[order],
            codes[order],
            len(self.classes_),
            first=int(self.form == "shared"),
            bias=float(self.intercept_scaling) if self.fit_intercept else 0.0,
        )

    def _keep(self, problem: BagProblem, found: Found) -> None:
        solution = found.solution
        w = solution.theta.w.reshape(problem.samples.shape)[problem.samples.first :]
        self.coef_ = np.ascontiguousarray(w[:, :-1])
        self.intercept_ = w[:, -1] * problem.samples.bias
        self._keep_end(found)
        # of a convex problem: where every sample has one region, the last bound is the objective itself
        lowest = solution.objective - solution.theta.gap if problem.samples.n_states == 1 else None
        note = self._note(problem)
        self.search_ = SearchReport(found.records, "objective", "min", proved_bound=lowest, note=note)

    def _note(self, problem: BagProblem) -> str:
        """What one start says, and how to get others."""
        if problem.samples.n_states == 1:
            return "Every sample has one region: the problem is convex."
        if self.n_init > 1:
            return ""
        guess = "The annealed start depends on no guess. " if self._is_annealed else ""
        return f"{guess}A larger n_init adds starts with random regions."

    def _keep_samples(
        self,
        problem: BagProblem,
        samples: Samples,
        labels: NDArray[Any],
        codes: NDArray[np.int32],
        merged: NDArray[np.float64],
        positions: NDArray[np.intp],
        found: Found,
    ) -> None:
        """Regions of the samples, and which class they are predicted as, counted along the canonical samples."""
        best, where = self._scores(samples)
        rows = np.arange(len(samples))
        known = codes >= 0
        self.latent_ = np.where(known, where[rows, self._region_class(np.maximum(codes, 0))], -1).astype(np.intp)
        self._keep_confusion(best, problem.samples.codes, merged, positions)
        end = problem.own_latent(found.solution.theta.w)
        self.changed_ = float(np.sum(merged * (end != found.first)) / merged.sum())
        self.n_regions_ = int(samples.counts[positions >= 0].sum())

    def _warn(self, samples: Samples, solution: Solution[Weights]) -> None:
        is_convex = self.n_regions_ <= np.count_nonzero(self.latent_ >= 0)  # zero is then what fits best
        if not is_convex and vanishes(self.alpha, self.coef_, self.objective_):
            self._warn_at_zero("region", samples.rows.data if sparse.issparse(samples.rows) else samples.rows)
        self._warn_if_unfinished(solution)

    # Predictions

    def _region_class(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The class whose scores choose the region."""
        return np.ones_like(codes) if self.form == "shared" else codes

    def _scores(self, samples: Samples) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Score of every class and the region that it has it on, shape (n_samples, n_classes)."""
        n, codes = len(samples), np.zeros(len(samples), dtype=np.int32)
        bags = self._bag_set(samples, codes, np.arange(n))
        w = np.zeros(bags.shape)
        w[bags.first :, :-1] = self.coef_
        if bags.bias:
            w[bags.first :, -1] = self.intercept_ / bags.bias
        best, where = np.empty((n, bags.n_classes)), np.empty((n, bags.n_classes), dtype=np.int32)

        def visit(block: Block) -> int:
            best[block.at], where[block.at], _ = bags.scores(block.at, w.ravel())
            return 0

        bags.chunks(n_jobs=self.n_jobs).map_sum(visit)
        return best, where

    def _read(self, X: Any, bags: Any) -> Samples:
        check_is_fitted(self)
        return read_samples(self, X, bags, reset=False)

    def decision_function(self, X: Any, *, bags: Any = None) -> NDArray[np.float64]:
        """Score of each class on the region that suits it best.

        Parameters
        ----------
        X, bags
            See `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes by how much the second one scores higher.
        """
        best, _ = self._scores(self._read(X, bags))
        return best if len(self.classes_) > 2 else np.asarray(best[:, 1] - best[:, 0])

    def predict(self, X: Any, *, bags: Any = None) -> NDArray[Any]:
        """The class of highest score of each sample.

        Parameters
        ----------
        X, bags
            See `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best, _ = self._scores(self._read(X, bags))
        return np.asarray(self.classes_[best.argmax(axis=1)])

    def predict_latent(self, X: Any, y: Any = None, *, bags: Any = None) -> NDArray[np.intp]:
        """The region of each sample that shows its class, by its position in the sample.

        Parameters
        ----------
        X, bags
            See `fit`.
        y : array-like of shape (n_samples,), optional
            Class of each sample, if it is known; otherwise it is the predicted one.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            If a label is none of `classes_`, or there is not one for each sample.
        """
        samples = self._read(X, bags)
        best, where = self._scores(samples)
        codes = best.argmax(axis=1)
        if y is not None:
            labels = samples.one_each(y, "y")
            codes = code_of_each(self.classes_, labels)
        return np.asarray(where[np.arange(len(samples)), self._region_class(codes)], dtype=np.intp)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, bags: Any = None) -> float:
        """Share of the samples that are predicted right.

        Parameters
        ----------
        X, y, bags
            See `fit`.
        sample_weight : array-like, optional

        Returns
        -------
        float
        """
        samples = self._read(X, bags)
        labels = samples.one_each(y, "y")
        if sample_weight is not None:
            sample_weight = samples.one_each(sample_weight, "sample_weight")
        best, _ = self._scores(samples)
        return float(accuracy_score(labels, self.classes_[best.argmax(axis=1)], sample_weight=sample_weight))

    def _summary(self) -> Summary:
        return latent_svm_summary(self)
