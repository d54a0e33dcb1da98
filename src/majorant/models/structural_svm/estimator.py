"""Estimator of latent structural SVMs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from majorant._numbers import briefly
from majorant._validation import (
    check_choice,
    check_integer,
    check_positive,
    check_sample_weight,
    check_verbose,
)
from majorant.data.chunks import Chunks
from majorant.engine.policies import BoundPolicy, check_bounds
from majorant.models.margin.classifier import MarginModel
from majorant.models.margin.search import Descents, First
from majorant.models.structural_svm.family import Candidates, StructuralFamily
from majorant.models.structural_svm.oracles import Oracles, Vector, check_model, inferred
from majorant.models.structural_svm.summary import structural_summary
from majorant.persistence import UnsavableError
from majorant.search.record import SearchReport
from majorant.solvers.structural_svm import SOLVERS


class LatentStructuralSVM(MarginModel):
    r"""Latent structural SVM on features and inference that you write.

    It minimises

    .. math::
        F(w) = \frac{\alpha}{2} |w|^2 + \sum_i c_i \Bigl[ \max_{y, z} \bigl(\langle w, \phi(x_i, y, z) \rangle
               + \Delta(y_i, y)\bigr) - \max_z \langle w, \phi(x_i, y_i, z) \rangle \Bigr],

    where :math:`c_i` are the sample weights divided by their sum. Fixing the latent values :math:`z_i` in the last term
    gives a convex upper bound, which is minimised to a known duality gap; the bound policy chooses them for each bound.

    Parameters
    ----------
    model : StructuralModel
        Your object with an attribute ``n_features`` and the methods ``joint_features(x, y, z)``,
        ``loss(y, predicted)``, ``inference(w, x)``, ``loss_augmented_inference(w, x, y)`` and
        ``latent_completion(w, x, y)``; see `majorant.models.structural_svm.StructuralModel` for what each returns, and
        for three optional ones.
    alpha : float, default=0.01
        Strength of the penalty, positive.
    solver : {"dcd", "cutting-plane", "bcfw"}, default="dcd"
        Solver of the bounds: dual coordinate descent on cached planes, one-slack cutting planes (fewest calls of
        inference, if it is slow and there are few samples), or block-coordinate Frank-Wolfe.
    bounds : bound policy, optional
        By default `GibbsLimit`, random valid bounds; `Tightest` is the concave-convex procedure. Policies choose among
        the latent values of ``latent_values`` or, without it, those found so far by completion and ``sample_latent``.
    latent_init : {"first", "random"} or sequence of latent values, default="first"
        Latent values of the first bound. "first": those of ``first_latent`` or, without it, of completion at w = 0.
        "random": drawn from ``latent_values`` or, without it, by ``sample_latent``.
    n_init : int, default=1
        Number of fits with different seeds, of which the best is kept. They are equal if nothing is random.
    tol : float, default=1e-3
        Relative duality gap at which a bound counts as minimised, and relative decrease of the objective at which the
        fit ends.
    max_iter : int, default=100
        Maximum number of bounds while exploring, and of each run after that.
    max_passes : int, default=200
        Maximum number of passes over the samples for one bound.
    verbose : int, default=0
        1 prints each fit when it ends, on stderr.
    random_state : int, RandomState instance or None, default=None
        Seed of bounds, of random latent values, and of the order in which the solver visits samples.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights :math:`w`.
    latent_ : list
        Latent value of each sample of the fit for its label, None for samples of weight zero.
    objective_ : float
        ``F(coef_)``.
    gap_ : float
        Duality gap of the last bound.
    n_iter_ : int
        Bounds minimised by the fit that was kept.
    n_passes_ : int
        Passes over the samples of all fits.
    search_ : SearchReport
        Objective of every fit.
    trace_ : Trace
        Objective and bound of every iteration.

    See Also
    --------
    majorant.LatentSVC : Classification of bags of regions.

    Notes
    -----
    Inputs are objects, not a table, so the command line does not fit this model. Saved files execute no code, so they
    cannot hold your model: `save` refuses, and says what to keep instead. Memory: a feature vector for each latent
    value and each output found for a sample.

    References
    ----------
    .. [1] C.-N. J. Yu, T. Joachims, "Learning structural SVMs with latent variables", ICML 2009.
    .. [2] S. N. Parizi, K. He, S. Sclaroff, P. Felzenszwalb, "Generalized Majorization-Minimization", section 4.2.

    Examples
    --------
    A number is up to two places off; the label is its sign, the latent value the place.

    >>> import numpy as np, majorant as mj
    >>> class Shifted:
    ...     n_features = 2
    ...     def joint_features(self, x, y, z):
    ...         return y * x[z : z + 2]
    ...     def loss(self, y, predicted):
    ...         return float(y != predicted)
    ...     def latent_values(self, x, y):
    ...         return range(3)
    ...     def best(self, w, x, labels, loss):
    ...         outputs = [(y, z) for y in labels for z in range(3)]
    ...         return max(outputs, key=lambda o: w @ self.joint_features(x, *o) + loss(o[0]))
    ...     def inference(self, w, x):
    ...         return self.best(w, x, (-1, 1), lambda y: 0.0)
    ...     def loss_augmented_inference(self, w, x, y):
    ...         return self.best(w, x, (-1, 1), lambda other: self.loss(y, other))
    ...     def latent_completion(self, w, x, y):
    ...         return self.best(w, x, (y,), lambda y: 0.0)[1]
    >>> X = [np.array([1, 2, 0, 0]), np.array([0, 0, 1, 2]), np.array([0, -1, -2, 0]), np.array([-1, -2, 0, 0])]
    >>> svm = mj.LatentStructuralSVM(Shifted(), random_state=0).fit(X, [1, 1, -1, -1])
    >>> svm.predict(X)
    [1, 1, -1, -1]
    >>> svm.latent_
    [0, 2, 1, 0]
    """

    takes_tables: ClassVar[bool] = False

    def __init__(
        self,
        model: Any,
        *,
        alpha: float = 0.01,
        solver: Literal["dcd", "cutting-plane", "bcfw"] = "dcd",
        bounds: BoundPolicy | None = None,
        latent_init: Any = "first",
        n_init: int = 1,
        tol: float = 1e-3,
        max_iter: int = 100,
        max_passes: int = 200,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.alpha = alpha
        self.solver = solver
        self.bounds = bounds
        self.latent_init = latent_init
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.max_passes = max_passes
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Sequence[Any], y: Sequence[Any], sample_weight: Any = None) -> Self:
        """Find the weights.

        Parameters
        ----------
        X : sequence
            Inputs of any kind that your model takes.
        y : sequence
            Labels of any kind.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights, not all zero.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the model lacks a method, a method returns an invalid value, or a parameter is out of range. Errors of
            your model are raised with a note on the method and the sample.
        """
        with self._all_or_nothing():
            self._check_parameters()
            inputs, labels = _pairs(X, y)
            given = check_sample_weight(sample_weight, len(inputs))
            weights = np.ones(len(inputs)) if given is None else given
            counted = np.flatnonzero(weights)
            inputs, labels = [inputs[i] for i in counted], [labels[i] for i in counted]
            first = self._given_latents(len(weights), counted)
            oracles = Oracles(self.model, inputs, labels)
            search = Descents(
                Chunks(np.arange(len(inputs)), weights=weights[counted] / float(weights.sum())),
                None if self.bounds is None else self.bounds.renumbered(_positions(weights)),
                self.tol,
                self.max_iter,
                self.verbose,
                n_polish=1,
            )
            seeds = check_random_state(self.random_state).randint(2**31, size=self.n_init).tolist()
            found = search.best((self._start(oracles, first, seed) for seed in seeds), seeds)
            solution = found.solution
            if not solution.converged:
                advice = "features of similar size help, or raise max_passes" if found.is_unsolved else "raise max_iter"
                self._warn(f"the objective has not settled: {solution.result}; {advice}")
            self._keep_end(found)
            self.search_ = SearchReport(found.records, "objective", "min")
            self.coef_ = solution.theta.w.copy()
            self.latent_: list[Any] = [None] * len(weights)
            for i, at in enumerate(counted.tolist()):
                self.latent_[at] = found.family.candidates.best(i, self.coef_)
        return self

    def _check_parameters(self) -> None:
        check_model(self.model)
        if np.isinf(check_positive("alpha", self.alpha)):
            raise ValueError("alpha must be finite; got inf")
        check_choice("solver", self.solver, list(SOLVERS))
        check_bounds(self.bounds)
        if isinstance(self.latent_init, str):
            check_choice(
                "latent_init", self.latent_init, ["first", "random"], or_else=", or a latent value for each sample"
            )
        check_integer("n_init", self.n_init, low=1)
        if check_positive("tol", self.tol) >= 1:
            raise ValueError(f"tol must be below 1; got {briefly(self.tol)}")
        check_integer("max_iter", self.max_iter, low=1)
        check_integer("max_passes", self.max_passes, low=1)
        check_verbose(self.verbose)

    def _given_latents(self, n: int, counted: NDArray[np.intp]) -> str | list[Any]:
        """Return the given latent values of samples with positive weight, or the name of the start."""
        if isinstance(self.latent_init, str):
            return self.latent_init
        given = _sequence("latent_init", self.latent_init)
        if len(given) != n:
            raise ValueError(f"latent_init must hold a latent value for each of {n} samples; got {len(given)}")
        return [given[i] for i in counted]

    def _start(self, oracles: Oracles, first: str | list[Any], seed: int) -> tuple[StructuralFamily, First]:
        """Return the family of one fit, and its first latent values by their positions among the candidates."""
        candidates, latent = _first_bound(oracles, first, seed)
        solver = SOLVERS[self.solver]
        family = StructuralFamily(oracles, candidates, solver, self.alpha, self.tol, self.max_passes, seed)
        return family, First(f"{first if isinstance(first, str) else 'given'} latent values", latent)

    def predict(self, X: Sequence[Any]) -> list[Any]:
        """Predict the label of every input.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        list
        """
        return [y for y, _ in self._inferred(X)]

    def predict_latent(self, X: Sequence[Any]) -> list[Any]:
        """Find the latent value of highest score for the predicted label of every input.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        list
        """
        return [z for _, z in self._inferred(X)]

    def _inferred(self, X: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        check_is_fitted(self, "coef_")
        return inferred(self.model, np.asarray(self.coef_, dtype=np.float64), _sequence("X", X))

    def complete(self, X: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        """Find the latent value of highest score for the given label of every input.

        Parameters
        ----------
        X, y : sequence
            Inputs and labels, of one length.

        Returns
        -------
        list
        """
        check_is_fitted(self, "coef_")
        inputs, labels = _pairs(X, y)
        oracles = Oracles(self.model, inputs, labels)
        return [oracles.completion(i, self.coef_) for i in range(len(inputs))]

    def score(self, X: Sequence[Any], y: Sequence[Any], sample_weight: Any = None) -> float:
        """Compute minus the mean loss of the predictions; 0 is best.

        Parameters
        ----------
        X, y : sequence
            Inputs and labels, of one length.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights, not all zero.

        Returns
        -------
        float
        """
        check_is_fitted(self, "coef_")
        inputs, labels = _pairs(X, y)
        weights = check_sample_weight(sample_weight, len(labels))
        oracles = Oracles(self.model, inputs, labels)
        losses = [oracles.loss(i, predicted) for i, predicted in enumerate(self.predict(inputs))]
        return -float(np.average(losses, weights=weights))

    def _summary(self) -> Any:
        return structural_summary(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Refuse to save: a file that executes no code cannot hold your model.

        Keep the weights, ``numpy.save(path, estimator.coef_)``; an estimator with your model whose ``coef_`` is set to
        them predicts. Or pickle the estimator, where your model's class can be imported.

        Parameters
        ----------
        path : str or path-like

        Raises
        ------
        UnsavableError
        """
        raise UnsavableError(
            f"a {type(self).__name__} cannot be saved: it holds a model that you wrote, and a saved file executes no "
            "code. Keep its weights, numpy.save(path, estimator.coef_), and set them as coef_ of a new estimator "
            "with your model; or pickle the estimator"
        )


def _first_bound(oracles: Oracles, first: str | list[Any], seed: int) -> tuple[Candidates, NDArray[np.int32]]:
    """Collect the latent values known before the fit, and the position of the first one of each sample."""
    candidates = Candidates(oracles)
    random = np.random.default_rng([seed, 1])
    chosen = np.zeros(oracles.n_samples, dtype=np.int32)
    listed, drawn = oracles.offers("latent_values"), oracles.offers("sample_latent")
    if first == "random" and not listed and not drawn:
        raise ValueError(
            'latent_init="random" needs a model with latent_values(x, y) or sample_latent(w, x, y, random); write one '
            'of them, or use "first" or give latent values'
        )
    for i in range(oracles.n_samples):
        positions = [candidates.add(i, z) for z in oracles.listed(i)] if listed else []
        if isinstance(first, list):
            chosen[i] = candidates.add(i, first[i])
        elif first == "random" and listed:
            chosen[i] = positions[int(random.integers(len(positions)))]
        elif first == "random":
            chosen[i] = candidates.add(i, oracles.sampled(i, np.zeros(oracles.dim), random))
        else:
            chosen[i] = candidates.add(i, oracles.first(i))
    oracles.refuse_loss_of_truth()
    return candidates, chosen


def _positions(weights: Vector) -> NDArray[np.intp]:
    """Return the position of each sample among those with positive weight, -1 for the others."""
    return np.where(weights > 0, np.cumsum(weights > 0) - 1, -1).astype(np.intp)


def _pairs(X: Any, y: Any) -> tuple[list[Any], list[Any]]:
    """Return the inputs and labels as lists of one length."""
    inputs, labels = _sequence("X", X), _sequence("y", y)
    if len(inputs) != len(labels):
        raise ValueError(f"X and y must be of one length; got {len(inputs)} inputs and {len(labels)} labels")
    return inputs, labels


def _sequence(name: str, values: Any) -> list[Any]:
    """Read a sequence as a list."""
    if hasattr(values, "columns"):
        raise TypeError(f"{name} is a table: give its rows as a list of what your model takes")
    try:
        sequence = None if isinstance(values, str | bytes | dict) else list(values)
    except TypeError:
        sequence = None
    if sequence is None:
        raise TypeError(f"{name} must be a sequence, such as a list or an array; got {type(values).__name__}")
    if not sequence:
        raise ValueError(f"{name} is empty: at least one sample is needed")
    return sequence
