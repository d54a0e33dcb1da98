"""Estimator of latent support vector machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from majorant._frames import check_row_names
from majorant._numbers import briefly
from majorant._validation import check_choice, check_positive, check_real, check_sample_weight
from majorant.engine.loop import Solution
from majorant.engine.policies import BoundPolicy
from majorant.models.latent_svm.starts import NAMED, first_regions
from majorant.models.latent_svm.summary import latent_svm_summary
from majorant.models.margin.classifier import MarginClassifier
from majorant.models.margin.family import Weights
from majorant.models.margin.reading import read_samples
from majorant.models.margin.samples import Distinct, Samples
from majorant.models.margin.search import First, Found, StartRequest, vanishes
from majorant.registry import ModelCard, register
from majorant.search.record import SearchReport
from majorant.solvers.structural_svm.bags import BagProblem, BagSet
from majorant.solvers.structural_svm.planes import NativeProblem
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
        estimates=("coef_", "intercept_"),
        shapes={"coef_": "cd 1d", "intercept_": "c 1"},
        objective_set_by=("alpha", "class_weight", "fit_intercept", "form", "intercept_scaling", "label_cost"),
        needs_target=True,
    )
)
class LatentSVC(MarginClassifier):
    r"""Latent support vector machine: classification of bags of regions, where one unknown region shows the class.

    A sample :math:`x_i` has regions :math:`x_{iz}`, rows of features: windows of an image, instances of a bag, segments
    of a recording. The score of a class is the maximum over regions, and the weights minimise

    .. math:: F(w) = \frac{\alpha}{2} |w|^2 + \sum_i c_i \Bigl[ \max_{y, z} \bigl(\langle w_y, x_{iz} \rangle +
              \Delta(y_i, y)\bigr) - \max_z \langle w_{y_i}, x_{iz} \rangle \Bigr],

    where :math:`c_i` are the sample weights, times those of their classes, divided by their sum. Fixing :math:`z` in
    the last term gives a convex upper bound, which is minimised to a known duality gap; the bound policy chooses
    :math:`z` for each bound (the tightest bound gives the concave-convex procedure).

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the penalty: the smaller, the larger the weights.
    latent_init : {"annealed", "first", "center", "random"} or array of shape (n_samples,), default="annealed"
        Regions of the first bound. "annealed": found along a path of temperatures, from the mean over all regions, a
        convex problem, to the maximum; the better one is kept of it and of a fit from the first regions. The others
        are the first region of each sample, the middle one, a random one, or those given, counted from 0.
    form : {"class-specific", "shared"}, default="class-specific"
        "class-specific": every class has weights and a region of its own. "shared": two classes, of which only the
        second (in sorted order) has weights; a sample belongs to it if its best region scores above zero
        (multiple-instance learning, MI-SVM).
    class_weight : "balanced" or dict, optional
        Factors of the weights of the classes, by which `sample_weight` is multiplied: numbers by label, 1 for those
        not named, or "balanced", with which all classes have the same total weight. For samples of which few belong to
        a class.
    label_cost : array-like of shape (n_classes, n_classes), optional
        :math:`\Delta`, the cost of predicting a class (second axis) for a sample of another (first axis), classes in
        sorted order; nonnegative, zero on the diagonal. By default 1 for every mistake.
    bounds : bound policy, optional
        Such as ``mj.GibbsLimit()``. By default the tightest bounds after an annealed start, ``mj.GibbsLimit()`` after
        other starts.
    solver : {"dcd", "cutting-plane", "bcfw"}, default="dcd"
        Solver of the bounds: dual coordinate descent on cached planes, one-slack cutting planes, or
        block-coordinate Frank-Wolfe. They reach the same minimum; "bcfw" keeps a vector of weights for every sample.
    fit_intercept : bool, default=True
        Whether regions get a constant feature, whose weights are penalised like the others.
    intercept_scaling : float, default=1.0
        Value of the constant feature: the larger it is, the less the intercept is penalised.
    n_init : int, default=1
        Number of starts, of which the best is kept: the first by `latent_init`, the others from random regions. If
        every sample has one region, the problem is convex and there is one start.
    max_iter : int, default=100
        Maximum number of bounds while exploring, and of each run after that.
    tol : float, default=1e-3
        Relative decrease of the objective at which the fit ends. Bounds are minimised to half of it, as a relative
        duality gap.
    verbose : int, default=0
        1 prints each start when it ends, on stderr.
    random_state : int, RandomState instance or None, default=None
        Seed of random starts, of random bounds and of the order in which the solver visits samples.
    n_jobs : int, optional
        Threads of a pass over the samples; -1 for all processors. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of samples with positive weight, in sorted order.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) in the shared form
    intercept_ : ndarray of shape (n_classes,) or (1,)
    latent_ : ndarray of shape (n_samples,)
        Region of highest score for the sample's own class, by its position in the sample; -1 where that class has no
        weight. In the shared form, region of highest score for the second class.
    objective_ : float
        :math:`F(w)`.
    gap_ : float
        Duality gap of the last bound.
    changed_ : float
        Share of the samples whose region differs from that of the start.
    confusion_ : ndarray of shape (n_classes, n_classes)
        Weight of the samples of each class (first axis) that are predicted as each (second axis).
    n_iter_ : int
        Number of bounds that were minimised.
    n_passes_ : int
        Passes over the samples by starts, solver and bounds.
    n_regions_ : int
        Regions of the samples with positive weight.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Set if X was a table with column names.
    search_ : SearchReport
        Objective of every start, starts that reached the best. If every sample has one region, the problem is convex
        and `proved_bound` is a lower bound on the objective.
    trace_ : Trace
        Objective and bound of every iteration, and share of latent values that differ from the tightest bound's.

    See Also
    --------
    sklearn.svm.LinearSVC : One region in each sample.
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

    _starts = NAMED
    _given = "one whole number a sample"
    _sample, _state = "sample", "region"

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        latent_init: Any = "annealed",
        form: Literal["class-specific", "shared"] = "class-specific",
        class_weight: Any = None,
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
        self.class_weight = class_weight
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
        # Weights of classes cannot make all rows one class where no plane passes beside the origin.
        tags.classifier_tags.poor_score = not self.fit_intercept
        return tags

    def fit(self, X: Any, y: Any, *, bags: Any = None, sample_weight: Any = None) -> Self:
        """Find the weights.

        Parameters
        ----------
        X : array-like
            The regions, as one of

            - a table of shape (n_regions, n_features), dense or sparse, with `bags`; without it every row is a sample,
            - a list of tables (regions, n_features), one for each sample,
            - an array of shape (n_samples, regions, n_features), in which trailing rows of NaN are no regions.
        y : array-like of shape (n_samples,)
            Labels, numbers or text. With `bags` also one for each row, the same in all rows of a sample.
        bags : array-like of shape (n_regions,), optional
            Name of the sample of each row. Samples are in the order in which they first appear.
        sample_weight : array-like, optional
            Nonnegative weights, not all zero, in the form of `y`. Labels of weight zero are no classes.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data, labels, weights or parameters cannot be used; the message says what to change.
        """
        check_row_names({"X": X, "latent_init": self.latent_init})
        with self._all_or_nothing():
            self._check_parameters()
            self._fit(read_samples(self, X, bags, reset=True), y, sample_weight)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("form", self.form, FORMS)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept must be True or False; got {briefly(self.fit_intercept)}")
        check_real("intercept_scaling", check_positive("intercept_scaling", self.intercept_scaling), high=1e6)

    def _costs(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        n = len(self.classes_)
        if self.form == "shared" and n != 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass. "
                f'form="shared" is for two classes, a sample belonging to the second one or not; got {n}. '
                'Use form="class-specific"'
            )
        return super()._costs(labels)

    def _check_given(self, given: NDArray[Any], samples: Samples) -> None:
        outside = (given < 0) | (given >= samples.counts)
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise ValueError(
                f"latent_init names region {given[at]} of sample {samples.names[at]!s}, which has {samples.counts[at]} "
                "(counted from 0)"
            )

    def _problem(
        self, samples: Samples, codes: NDArray[np.int32], order: NDArray[np.intp], cost: NDArray[np.float64]
    ) -> BagProblem:
        bags = BagSet(
            samples.rows,
            samples.starts[order],
            samples.counts[order],
            codes[order],
            len(self.classes_),
            first=int(self.form == "shared"),
            bias=float(self.intercept_scaling) if self.fit_intercept else 0.0,
        )
        return BagProblem(bags, cost, self.n_jobs)

    def check_estimates(self) -> None:
        """Raise ValueError for weights of other classes than there are; asked of a model from a file."""
        n = 1 if self.form == "shared" else len(self.classes_)
        if not len(self.coef_) == len(self.intercept_) == n:
            found = f"its coef_ and intercept_ have {len(self.coef_)} and {len(self.intercept_)} rows"
            raise ValueError(f"{found}, and form={self.form!r} has {n}")

    def _fitted(self, samples: Samples) -> tuple[BagProblem, NDArray[np.float64]]:
        n, k = len(samples), len(self.classes_)
        problem = self._problem(samples, np.zeros(n, dtype=np.int32), np.arange(n), np.zeros((k, k)))
        bags, w = problem.samples, np.zeros(problem.samples.shape)
        w[bags.first :, :-1] = self.coef_
        if bags.bias:
            w[bags.first :, -1] = self.intercept_ / bags.bias
        return problem, w.ravel()

    def _first(self, request: StartRequest[Any], samples: Samples) -> Iterator[First]:
        return first_regions(request)

    def _keep_weights(
        self, problem: NativeProblem[Any], w: NDArray[np.float64], samples: Samples, distinct: Distinct
    ) -> None:
        bags = problem.samples
        rows = w.reshape(bags.shape)[bags.first :]
        self.coef_ = np.ascontiguousarray(rows[:, :-1])
        self.intercept_ = rows[:, -1] * bags.bias
        self.n_regions_ = int(samples.counts[distinct.positions >= 0].sum())

    def _report(self, problem: NativeProblem[Any], found: Found) -> SearchReport:
        proved, note = None, ""
        if problem.samples.n_states == 1:
            proved = self.objective_ - self.gap_  # the last bound is the objective itself
            note = "Every sample has one region: the problem is convex."
        elif self.n_init == 1:
            guess = "The annealed start depends on no guess. " if self._is_annealed else ""
            note = f"{guess}A larger n_init adds starts with random regions."
        return SearchReport(found.records, "objective", "min", proved_bound=proved, note=note)

    def _is_stuck(self, solution: Solution[Weights]) -> bool:
        is_convex = self.n_regions_ <= np.count_nonzero(self.latent_ >= 0)  # zero is then what fits best
        return not is_convex and vanishes(self.alpha, self.coef_, self.objective_)

    # Predictions

    def _read(self, X: Any, bags: Any) -> Samples:
        check_is_fitted(self)
        return read_samples(self, X, bags, reset=False)

    def decision_function(self, X: Any, *, bags: Any = None) -> NDArray[np.float64]:
        """Compute the score of each class on its best region.

        Parameters
        ----------
        X, bags
            See `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, score of the second minus that of the first.
        """
        return self._decisions(self._read(X, bags))

    def predict(self, X: Any, *, bags: Any = None) -> NDArray[Any]:
        """Predict the class of highest score.

        Parameters
        ----------
        X, bags
            See `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._predicted(self._read(X, bags))

    def predict_latent(self, X: Any, y: Any = None, *, bags: Any = None) -> NDArray[np.intp]:
        """Find the region of highest score for the class of each sample, by its position in the sample.

        Parameters
        ----------
        X, bags
            See `fit`.
        y : array-like of shape (n_samples,), optional
            Class of each sample; by default the predicted one.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            If a label is not in `classes_`, or the number of labels is wrong.
        """
        return self._latent_values(self._read(X, bags), y)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, bags: Any = None) -> float:
        """Compute the accuracy.

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
            sample_weight = check_sample_weight(samples.one_each(sample_weight, "sample_weight"), len(labels))
        from sklearn.metrics import accuracy_score  # takes time to load

        return float(accuracy_score(labels, self._predicted(samples), sample_weight=sample_weight))

    def _summary(self) -> Summary:
        return latent_svm_summary(self)
