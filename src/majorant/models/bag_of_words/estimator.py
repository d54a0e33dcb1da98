"""Estimator of reconfigurable bags of words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from majorant._validation import check_integer, check_positive, check_real
from majorant.engine.loop import Solution
from majorant.engine.policies import BoundPolicy
from majorant.models.bag_of_words.starts import NAMED, first_parts
from majorant.models.bag_of_words.summary import bag_of_words_summary
from majorant.models.margin.classifier import MarginClassifier
from majorant.models.margin.family import Weights
from majorant.models.margin.reading import read_images
from majorant.models.margin.samples import Distinct, Samples
from majorant.models.margin.search import First, Found, StartRequest, vanishes
from majorant.registry import ModelCard, register
from majorant.search.record import SearchReport
from majorant.solvers.structural_svm.grids import GridProblem, GridSet
from majorant.solvers.structural_svm.planes import NativeProblem
from majorant.summary import Summary


@register(
    ModelCard(
        name="bag-of-words",
        title="reconfigurable bag of words",
        question="Which class is each image, and which part does each of its regions show?",
        kind="classification",
        size_parameter=None,
        part="class",
        objective_name="objective",
        objective_title="mean latent hinge loss and penalty",
        objective_attribute="objective_",
        estimates=("part_filters_", "table_"),
        shapes={"part_filters_": "kd", "table_": "c*k"},
        objective_set_by=("alpha", "class_weight", "label_cost", "table_scaling"),
        needs_target=True,
    )
)
class ReconfigurableBagOfWords(MarginClassifier):
    r"""Reconfigurable bag of words: classification of images cut into a grid of regions that show unknown parts.

    Parts are filters :math:`A_p` shared by all classes. A table :math:`B` says which parts each class expects in each
    region. The score of a class for an image :math:`x_i` with regions :math:`x_{ir}` is

    .. math:: s_y(x_i) = \sum_r \max_p \bigl( \langle A_p, x_{ir} \rangle + t B_{yrp} \bigr).

    The weights minimise

    .. math:: F(A, B) = \frac{\alpha}{2} \bigl(|A|^2 + |B|^2\bigr) + \sum_i c_i \Bigl[ \max_y \bigl(s_y(x_i) +
              \Delta(y_i, y)\bigr) - s_{y_i}(x_i) \Bigr],

    where :math:`c_i` are the sample weights, times those of their classes, divided by their sum. Fixing the parts in
    the last term gives a convex upper bound, which is minimised to a known duality gap; the bound policy chooses the
    parts for each bound (the tightest bound gives the concave-convex procedure).

    Parameters
    ----------
    n_parts : int, default=16
        Number of parts. Some may remain unused.
    alpha : float, default=0.01
        Strength of the penalty: the smaller, the larger the weights. Scores are sums over regions: for images of `R`
        regions, about ``R`` times the value for one region has the same effect.
    latent_init : {"annealed", "kmeans", "random"} or array of shape (n_images, rows, columns), default="annealed"
        Parts of the first bound. "annealed": found along a path of temperatures, from the mean over parts to the
        maximum. "kmeans": clusters of the regions. "random": random parts (or, if all weights vanish after these, the
        one of them whose mean is nearest). An array: those given, counted from 0; further starts are annealed.
    coherence : float, default=0.0
        With "kmeans" only: cost of different parts in neighbouring regions of the start. At 1, the cost if all
        neighbours differed equals the sum of squared distances of regions from their nearest clusters. Needs images
        that are grids.
    class_weight : "balanced" or dict, optional
        Factors of the weights of the classes, by which `sample_weight` is multiplied: numbers by label, 1 for those
        not named, or "balanced", with which all classes have the same total weight. For images of which few belong to
        a class.
    label_cost : array-like of shape (n_classes, n_classes), optional
        :math:`\Delta`, the cost of predicting a class (second axis) for an image of another (first axis), classes in
        sorted order; nonnegative, zero on the diagonal. By default 1 for every mistake.
    bounds : bound policy, optional
        Such as ``mj.GibbsLimit()``. By default the tightest bounds after an annealed start, ``mj.GibbsLimit()`` after
        other starts. Units are regions: those of the first image, row by row, then those of the next.
        ``mj.Biased(mj.Coherence(edges))`` prefers equal parts in neighbouring regions. A bias that names regions of
        the first image only, by edges or by pairs, holds in every image.
    table_scaling : float, default=1.0
        :math:`t`: the larger, the less the table is penalised.
    n_init : int, default=1
        Number of starts, of which the best is kept.
    max_iter : int, default=100
        Maximum number of bounds while exploring, and of each run after that.
    tol : float, default=1e-3
        Relative decrease of the objective at which the fit ends. Bounds are minimised to half of it, as a relative
        duality gap.
    verbose : int, default=0
        1 prints each start when it ends, on stderr.
    random_state : int, RandomState instance or None, default=None
        Seed of starts, of random bounds and of the order in which the solver visits images.
    n_jobs : int, optional
        Threads of a pass over the images; -1 for all processors. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of images with positive weight, in sorted order.
    part_filters_ : ndarray of shape (n_parts, n_features)
        :math:`A`.
    table_ : ndarray of shape (n_classes, rows, columns, n_parts)
        :math:`t B`: contribution of a part to the score of a class in a region. Its middle axes are those of X.
    latent_ : ndarray of shape (n_images, rows, columns)
        Best part of each region for its image's own class; -1 where that class has no weight. Shape of X without the
        last axis.
    objective_ : float
        :math:`F(A, B)`.
    gap_ : float
        Duality gap of the last bound.
    changed_ : float
        Share of the regions whose part differs from that of the start.
    confusion_ : ndarray of shape (n_classes, n_classes)
        Weight of the images of each class (first axis) that are predicted as each (second axis).
    n_iter_ : int
        Number of bounds that were minimised.
    n_passes_ : int
        Passes over the images by starts, solver and bounds.
    n_features_in_ : int
        Features of a region.
    feature_names_in_ : ndarray of shape (n_features,)
        Set if X was a table with column names.
    search_ : SearchReport
        Objective of every start, starts that reached the best.
    trace_ : Trace
        Objective and bound of every iteration, and share of regions whose part differs from the tightest bound's.

    See Also
    --------
    majorant.LatentSVC : One region of each sample shows its class.
    majorant.Coherence : Preference for equal parts in neighbouring regions.

    Notes
    -----
    Memory grows linearly with the number of images: their regions, and about 24 part maps of each.

    References
    ----------
    .. [1] S. N. Parizi, J. Oberlin, P. Felzenszwalb, "Reconfigurable models for scene recognition", CVPR 2012.
    .. [2] S. N. Parizi, K. He, S. Sclaroff, P. Felzenszwalb, "Generalized Majorization-Minimization", section 5.3.

    Examples
    --------
    Sky is above sand on a beach and below the trees in a forest: two classes of images of 2 x 2 regions.

    >>> import numpy as np, majorant as mj
    >>> random = np.random.default_rng(0)
    >>> look = np.array([[3.0, 0.0], [0.0, 3.0], [-3.0, -3.0]])  # of sky, sand and trees
    >>> layouts = np.array([[[0, 0], [1, 1]], [[2, 2], [0, 0]]])
    >>> y = np.arange(40) % 2
    >>> X = look[layouts[y]] + random.normal(size=(40, 2, 2, 2))
    >>> model = mj.ReconfigurableBagOfWords(n_parts=3, random_state=0).fit(X, y)
    >>> model.score(X, y)
    1.0
    >>> model.latent_.shape
    (40, 2, 2)
    """

    _starts = NAMED
    _given = "a whole number for every region"
    _sample, _state = "image", "part"

    def __init__(
        self,
        n_parts: int = 16,
        alpha: float = 0.01,
        *,
        latent_init: Literal["annealed", "kmeans", "random"] | Any = "annealed",
        coherence: float = 0.0,
        class_weight: Any = None,
        label_cost: Any = None,
        bounds: BoundPolicy | None = None,
        table_scaling: float = 1.0,
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-3,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_parts = n_parts
        self.alpha = alpha
        self.latent_init = latent_init
        self.coherence = coherence
        self.class_weight = class_weight
        self.label_cost = label_cost
        self.bounds = bounds
        self.table_scaling = table_scaling
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        # A region shows which part it is and nothing else: fewer parts than labels cannot tell single regions apart.
        tags.classifier_tags.poor_score = self.n_parts < 3
        return tags

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> Self:
        """Find the weights.

        Parameters
        ----------
        X : array-like of shape (n_images, rows, columns, n_features)
            Features of the regions of each image. Also (n_images, regions, n_features), where the regions are no grid,
            and (n_images, n_features), a table of images of one region.
        y : array-like of shape (n_images,)
            Labels, numbers or text.
        sample_weight : array-like of shape (n_images,), optional
            Nonnegative weights, not all zero. Labels of weight zero are no classes.

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
            images = read_images(self, X, reset=True)
            if self.coherence and len(images.shape) != 2:
                raise ValueError(
                    f"coherence={self.coherence!r} needs images that are grids, X of shape (images, rows, columns, "
                    f"features); got {len(images.shape) + 2} axes"
                )
            self._fit(images, y, sample_weight)
        return self

    def check_estimates(self) -> None:
        """Raise ValueError if regions show parts that there are not; asked of a model from a file."""
        if self.latent_.size and not -1 <= self.latent_.min() <= self.latent_.max() < len(self.part_filters_):
            raise ValueError(
                f"its latent_ names parts that there are not: it has {len(self.part_filters_)} part_filters_"
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_parts", self.n_parts, low=1)
        check_real("coherence", self.coherence, low=0.0, high=1e6)
        if self.coherence and not (isinstance(self.latent_init, str) and self.latent_init == "kmeans"):
            raise ValueError(
                f'coherence={self.coherence!r} is for latent_init="kmeans"; for coherent bounds from any start, '
                "bounds=mj.Biased(mj.Coherence(edges))"
            )
        check_real("table_scaling", check_positive("table_scaling", self.table_scaling), low=1e-6, high=1e6)

    def _check_given(self, given: NDArray[Any], samples: Samples) -> None:
        outside = (given < 0) | (given >= self.n_parts)
        if outside.any():
            at = tuple(int(i) for i in np.argwhere(outside)[0])
            raise ValueError(
                f"latent_init names part {given[at]} for image {at[0]}, but there are {self.n_parts} (counted from 0)"
            )

    def _problem(
        self, samples: Samples, codes: NDArray[np.int32], order: NDArray[np.intp], cost: NDArray[np.float64]
    ) -> GridProblem:
        return GridProblem(self._grids(samples, codes, order, self.n_parts), cost, self.n_jobs)

    def _grids(self, samples: Samples, codes: NDArray[np.int32], order: NDArray[np.intp], n_parts: int) -> GridSet:
        scale = float(self.table_scaling)
        return GridSet(
            samples.rows, samples.starts[order], samples.n_units, codes[order], len(self.classes_), n_parts, scale
        )

    def _fitted(self, samples: Samples) -> tuple[GridProblem, NDArray[np.float64]]:
        n, k = len(samples), len(self.classes_)
        grids = self._grids(samples, np.zeros(n, dtype=np.int32), np.arange(n), len(self.part_filters_))
        w = np.concatenate([self.part_filters_.ravel(), self.table_.ravel() / grids.scale])
        return GridProblem(grids, np.zeros((k, k)), self.n_jobs), w

    def _first(self, request: StartRequest[Any], samples: Samples) -> Iterator[First]:
        return first_parts(request, samples.shape, float(self.coherence))

    def _keep_weights(
        self, problem: NativeProblem[Any], w: NDArray[np.float64], samples: Samples, distinct: Distinct
    ) -> None:
        grids = problem.samples
        filters, table = grids.split(w)
        self.part_filters_ = filters.copy()
        self.table_ = grids.scale * table.reshape(len(self.classes_), *samples.shape, self.n_parts)

    def _report(self, problem: NativeProblem[Any], found: Found) -> SearchReport:
        note = "" if self.n_init > 1 else "A larger n_init adds starts."
        return SearchReport(found.records, "objective", "min", note=note)

    def _is_stuck(self, solution: Solution[Weights]) -> bool:
        return self.n_parts > 1 and vanishes(self.alpha, solution.theta.w, solution.objective)

    def _penalties(self) -> str:
        also = f" or coherence (now {self.coherence:g})" if self.coherence else ""
        return super()._penalties() + also

    # Predictions

    def _read(self, X: Any) -> Samples:
        check_is_fitted(self)
        images = read_images(self, X, reset=False)
        if images.shape != self.table_.shape[1:-1]:
            raise ValueError(
                f"images must be cut into regions as those of the fit, {self.table_.shape[1:-1]}; got {images.shape}"
            )
        return images

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute the score of each class.

        Parameters
        ----------
        X
            See `fit`.

        Returns
        -------
        ndarray of shape (n_images, n_classes), or (n_images,) for two classes
            For two classes, score of the second minus that of the first.
        """
        return self._decisions(self._read(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of highest score.

        Parameters
        ----------
        X
            See `fit`.

        Returns
        -------
        ndarray of shape (n_images,)
        """
        return self._predicted(self._read(X))

    def predict_latent(self, X: Any, y: Any = None) -> NDArray[np.intp]:
        """Find the part of each region for the class of its image.

        Parameters
        ----------
        X
            See `fit`.
        y : array-like of shape (n_images,), optional
            Class of each image; by default the predicted one.

        Returns
        -------
        ndarray of shape (n_images, rows, columns)
            Shape of X without the last axis.

        Raises
        ------
        ValueError
            If a label is not in `classes_`, or the number of labels is wrong.
        """
        return self._latent_values(self._read(X), y)

    def _summary(self) -> Summary:
        return bag_of_words_summary(self)
