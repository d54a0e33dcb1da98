"""The estimator of prototypes with a latent pose."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from majorant import energy
from majorant._validation import (
    check_choice,
    check_enough_rows,
    check_integer,
    check_real,
    check_runs,
    check_sample_weight,
    exact_labels,
    levels_to_user,
    refuse_missing_labels,
    refuse_mixed,
    validate_data,
)
from majorant.data.chunks import Chunks
from majorant.data.measure import square_unit
from majorant.engine.trace import Trace
from majorant.models.base import LatentVariableModel
from majorant.models.prototypes.conditional import ConditionalLoss
from majorant.models.prototypes.fitted import FittedPrototypes
from majorant.models.prototypes.search import (
    LabelledRows,
    PoseSearch,
    in_order,
    labelled_rows,
    together,
)
from majorant.models.prototypes.summary import prototypes_summary
from majorant.registry import ModelCard, register
from majorant.search.record import SearchReport, StartRecord
from majorant.starts.restarts import Best
from majorant.summary import Summary

ACCEPTED: dict[str, Any] = {"dtype": np.float64, "order": "C"}
"""Options of scikit-learn's ``validate_data`` for rows."""


@register(
    ModelCard(
        name="prototype",
        title="prototype classification",
        question="Which class is each row, whatever its pose?",
        kind="classification",
        size_parameter="n_poses",
        part="pose",
        objective_name="free energy",
        objective_title="free energy of the rows in their own class",
        objective_attribute="objective_",
        estimates=("prototypes_", "pose_shares_", "temperature_"),
        shapes={"n_poses_": "c", "prototypes_": "ckd", "pose_shares_": "ck", "temperature_": ""},
        objective_set_by=("alpha", "beta"),
        needs_target=True,
        sections=("majorant.report.sections.prototypes:prototypes_section",),
    )
)
class LatentPrototypeClassifier(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClassifierMixin,  # type: ignore[misc]
    LatentVariableModel,
):
    r"""Classification by several prototypes ("poses") of each class, where the pose of a row is latent.

    The energy of a class `y` in pose `z` is the squared distance of a row to that class's prototype in that pose,

    .. math:: E(y, z, x) = |x - R_{yz}|^2,

    and the class of a row is the one of lowest free energy, in which the pose is summed out,

    .. math::
        F(y, x) = -\frac{1}{\beta} \log \frac{1}{m_y} \sum_z e^{-\beta E(y, z, x)}, \qquad
        P(y \mid x) = \frac{e^{-\beta F(y, x)}}{\sum_{y'} e^{-\beta F(y', x)}}.

    A class is thus a mixture of spherical Gaussians of one variance, :math:`1 / 2\beta`, and the poses of a class are
    a priori equally probable. At zero temperature (``beta=inf``) the nearest prototype decides.

    Parameters
    ----------
    n_poses : int, default=4
        Prototypes of each class. With 1 and ``method="em"`` this is the nearest-centroid classifier.
    beta : float, default=1.0
        Inverse temperature, at least 1e-6 and possibly infinite, in units that make it independent of those of X:
        energies are divided by :math:`2v`, where :math:`v = \mathrm{tr}(S^2) / \mathrm{tr}(S)` is the variance, along
        the directions that matter, about the best prototypes at zero temperature (S is the covariance of rows minus
        the nearest prototype of their class, over all classes). So with 1, a pose is as wide as the scatter of rows
        about it. Rotations and constant columns change nothing.
    method : {"em", "gradient"}, default="em"
        How prototypes are fitted. "em": to the rows of their own class, by EM over the latent pose (at zero
        temperature, k-means in each class). "gradient": to discriminate between classes, by L-BFGS after EM, on

        .. math:: \sum_i w_i \bigl[-\log P(y_i \mid x_i) + \alpha \beta F(y_i, x_i)\bigr].

        Where every row coincides with a prototype, nothing is trained.
    alpha : float, default=0.003
        Weight of the free energy in the objective of "gradient", which keeps prototypes near their rows. With 0,
        separable classes drive prototypes to infinity.
    n_init : "auto" or int, default="auto"
        Starts of EM in each class. "auto": 4, the centres of k-means by swap search and three k-means++ seedings.
        At zero temperature, the number of swap searches; "auto": 1.
    max_iter : int, default=1000
        Largest number of iterations of EM, and of L-BFGS.
    tol : float, default=1e-8
        EM stops when the relative decrease of the free energy is smaller than this; L-BFGS when the decrease of the
        mean loss of a row is.
    verbose : int, default=0
        1 shows the starts as they end, on stderr.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int, optional
        Number of threads over blocks of rows; -1 for all processors.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels that have rows with weight, in sorted order.
    prototypes_ : ndarray of shape (n_classes, n_poses, n_features)
        The pose of largest weight of each class first. A class with fewer distinct rows than `n_poses` has as many
        poses as distinct rows; further prototypes repeat them.
    n_poses_ : ndarray of shape (n_classes,)
        Poses of each class.
    pose_shares_ : ndarray of shape (n_classes, n_poses)
        Share of each class's weight in each pose.
    temperature_ : float
        :math:`2v / \beta`, in squared units of X: what energies are divided by. 0 at zero temperature, and where all
        rows of a class are equal in every class.
    objective_ : float
        What was minimised: the weighted sum of the rows' free energies in their own class, in squared units of X, or,
        by gradient, the sum above.
    poses_ : ndarray of shape (n_samples,)
        Pose of each row of the fit in its own class, -1 where that class has no weight.
    confusion_ : ndarray of shape (n_classes, n_classes)
        Weight of the rows of each class (first axis) that are predicted as each (second axis).
    n_iter_ : int
        Iterations of the slowest class, or of L-BFGS.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X had column names.
    search_ : SearchReport
        Every start, how many reached the best optimum, how far the second is. A start is one of a single class,
        with all other classes at their best; with ``method="gradient"`` there is one start.
    trace_ : Trace
        Objective and bound of all classes together, iteration by iteration.

    See Also
    --------
    sklearn.neighbors.NearestCentroid : One pose.
    majorant.KMeans : The poses of one class at zero temperature.
    majorant.energy : Free energies and posteriors of any energies.

    References
    ----------
    .. [1] Y. LeCun, "Machine learning and pattern recognition: latent variables, mixture models, EM", lecture notes:
       the example of aircraft seen from different angles.

    Examples
    --------
    >>> import majorant as mj
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mj.LatentPrototypeClassifier(2, random_state=0).fit(X, y)
    >>> round(model.score(X, y), 3)
    0.96
    >>> model.prototypes_.shape
    (3, 2, 4)
    """

    def __init__(
        self,
        n_poses: int = 4,
        *,
        beta: float = 1.0,
        method: Literal["em", "gradient"] = "em",
        alpha: float = 0.003,
        n_init: str | int = "auto",
        max_iter: int = 1000,
        tol: float = 1e-8,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_poses = n_poses
        self.beta = beta
        self.method = method
        self.alpha = alpha
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the prototypes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels: numbers or text. One label alone is fine: its poses are found, and it is always predicted.
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
        with self._all_or_nothing():
            self._check_parameters()
            random = check_random_state(self.random_state)
            self._refuse_chunks(X)
            X, y = validate_data(self, X, exact_labels(y), **ACCEPTED)
            refuse_missing_labels(y)
            refuse_mixed("y", y)
            check_classification_targets(y)
            check_enough_rows(len(X), "n_poses", self.n_poses, "pose")
            weights = check_sample_weight(sample_weight, len(X))
            rows, self.classes_ = labelled_rows(X, y, weights, self.n_jobs)
            self._warn_of_few(rows)
            scatter = sum(part.scatter for part in rows.classes)
            unit = square_unit(rows.scale, scatter, max(np.abs(part.measure.points).max() for part in rows.classes))
            search = PoseSearch(self.n_poses, self.beta, self.n_init, self.max_iter, self.tol, self.verbose, unit)
            found, temperature = search.find(rows, random)
            self.temperature_ = temperature * unit
            if self.method == "gradient" and temperature > 0:
                poses = self._trained(rows, found, temperature)
            else:
                poses = self._fitted_to_own(found, unit)
            families = [search.family(part, temperature) for part in rows.classes]
            self._keep_poses(rows, [in_order(*each) for each in zip(families, rows.classes, poses, strict=True)])
            self._keep_rows(X, rows)
        return self

    def _check_parameters(self) -> None:
        check_integer("n_poses", self.n_poses, low=1)
        check_real("beta", self.beta, low=1e-6)
        check_choice("method", self.method, ["em", "gradient"])
        check_real("alpha", self.alpha, low=0.0, high=1e6)
        check_runs(self)
        if self.method == "gradient" and np.isinf(self.beta):
            raise ValueError(
                'method="gradient" needs a finite beta: at zero temperature probabilities have no gradient; '
                'lower beta, or use method="em"'
            )

    def _warn_of_few(self, rows: LabelledRows) -> None:
        few = {
            str(name): part.measure.n_points
            for name, part in zip(self.classes_, rows.classes, strict=True)
            if part.measure.n_points < self.n_poses
        }
        if few:
            shown = ", ".join(f"{name!r} ({n} distinct rows)" for name, n in list(few.items())[:5])
            more = f" and {len(few) - 5} more" if len(few) > 5 else ""
            warnings.warn(
                f"n_poses={self.n_poses} is more than some classes can have, which get as many as distinct rows: "
                f"{shown}{more}",
                ConvergenceWarning,
                stacklevel=levels_to_user(),
            )

    def _fitted_to_own(self, found: list[Best], unit: float) -> list[NDArray[np.float64]]:
        """Set objective, search and history from the fits of the classes; return the poses about each origin."""
        records, trace, total = together(found)
        self.objective_ = total * unit
        self.n_iter_ = len(trace)
        note = "A start is one of a single class, with all other classes at their best." if len(found) > 1 else ""
        self.search_ = SearchReport(records, "free energy", "min", note=note).scaled(unit)
        self.trace_ = trace.scaled(unit)
        return [f.solution.theta for f in found]

    def _trained(self, rows: LabelledRows, found: list[Best], temperature: float) -> list[NDArray[np.float64]]:
        """Train the poses to discriminate between the classes, starting from those fitted separately."""
        poses = [f.solution.theta for f in found]
        origins = np.array([part.measure.origin for part in rows.classes])
        shifts = origins - origins.mean(axis=0)
        x = np.concatenate([part.measure.points + s for part, s in zip(rows.classes, shifts, strict=True)])
        codes = np.repeat(np.arange(len(poses)), [part.measure.n_points for part in rows.classes])
        weights = np.concatenate([part.measure.weights for part in rows.classes])
        counts = np.array([len(p) for p in poses])
        loss = ConditionalLoss(
            Chunks(x, codes, weights=weights, n_jobs=self.n_jobs), counts, self.n_poses, 1 / temperature, self.alpha
        )
        filled = np.array([_filled(p + s, self.n_poses) for p, s in zip(poses, shifts, strict=True)])
        trained = loss.minimise(filled, self.tol, self.max_iter)
        total = rows.total_weight
        self.objective_ = trained.value * total
        self.n_iter_ = trained.n_iter
        self.search_ = SearchReport(
            (StartRecord("EM", self.objective_, trained.n_iter, trained.converged),),
            "conditional loss",
            "min",
            note=f"It started from the best of {sum(len(f.records) for f in found)} runs of EM.",
        )
        self.trace_ = Trace([{"objective": value * total, "exploring": 0.0} for value in trained.values[1:]])
        return [t[:n] - s for t, n, s in zip(trained.x, counts, shifts, strict=True)]

    def _keep_poses(self, rows: LabelledRows, ordered: list[tuple[NDArray[Any], NDArray[Any]]]) -> None:
        """Set the fitted prototypes, in the units of X, and their shares."""
        self.n_poses_ = np.array([len(poses) for poses, _ in ordered])
        self.prototypes_ = np.array(
            [
                _filled(part.measure.restore(poses) / rows.scale, self.n_poses)
                for part, (poses, _) in zip(rows.classes, ordered, strict=True)
            ]
        )
        self.pose_shares_ = np.array([np.pad(shares, (0, self.n_poses - len(shares))) for _, shares in ordered])

    def _keep_rows(self, X: NDArray[np.float64], rows: LabelledRows) -> None:
        """Set the confusion counts and the poses' weights, independently of the order of the rows."""
        self.poses_ = self._poses(X, rows.codes)
        predicted = self._codes(X)
        n = len(self.classes_)
        self.confusion_ = np.zeros((n, n))
        for c, part in enumerate(rows.classes):
            measure = part.measure
            of_point = np.zeros(measure.n_points, dtype=np.intp)
            has_weight = measure.positions >= 0
            of_point[measure.positions[has_weight]] = predicted[rows.codes == c][has_weight]
            self.confusion_[c] = np.bincount(of_point, weights=measure.weights, minlength=n)

    # Predictions

    def _fitted(self) -> FittedPrototypes:
        return FittedPrototypes.of(self.prototypes_, self.n_poses_, self.temperature_)

    def _check_rows(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        self._refuse_chunks(X)
        rows: NDArray[np.float64] = validate_data(self, X, reset=False, **ACCEPTED)
        return rows

    def _by_block(
        self, columns: tuple[NDArray[Any], ...], f: Callable[..., Any], shape: tuple[int, ...], dtype: Any
    ) -> NDArray[Any]:
        """Return ``f(*columns)`` of every block of rows, in one array."""
        return Chunks(*columns, n_jobs=self.n_jobs).map_rows(lambda block: f(*block.columns), shape, dtype)

    def _codes(self, X: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the number of the predicted class of each row."""
        fitted = self._fitted()

        def f(x: NDArray[np.float64]) -> Any:
            return energy.free_energy(fitted.relative(x), axis=2, beta=fitted.beta).argmin(axis=1)

        return self._by_block((X,), f, (), np.intp)

    def _poses(self, X: NDArray[np.float64], codes: NDArray[np.intp] | None) -> NDArray[np.intp]:
        """Return the best pose of each row within its class (-1 where that is -1), or over all classes."""
        fitted = self._fitted()

        def of_pair(x: NDArray[np.float64]) -> Any:
            return energy.map_inference(fitted.relative(x), label_axis=1, latent_axis=2).latent

        def of_class(x: NDArray[np.float64], code: NDArray[np.intp]) -> Any:
            return np.where(code < 0, -1, fitted.relative(x)[np.arange(len(x)), code].argmin(axis=1))

        return self._by_block(
            (X,) if codes is None else (X, codes), of_pair if codes is None else of_class, (), np.intp
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of lowest free energy of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = self._codes(self._check_rows(X))
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, summed over poses.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        X = self._check_rows(X)
        fitted = self._fitted()

        def f(x: NDArray[np.float64]) -> Any:
            return energy.marginal_posterior(fitted.relative(x), label_axis=1, latent_axis=2, beta=fitted.beta)

        return self._by_block((X,), f, (len(self.classes_),), np.float64)

    def predict_poses(self, X: Any, y: Any = None) -> NDArray[np.intp]:
        """Return the pose of each row, as a position along the second axis of `prototypes_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Class of each row, if it is known. By default the pose is that of the nearest prototype of any class.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            If a label is none of `classes_`, or there is not one for each row.
        """
        X = self._check_rows(X)
        if y is None:
            return self._poses(X, None)
        y = column_or_1d(exact_labels(y))
        if len(y) != len(X):
            raise ValueError(f"y must have one label per row; got {len(y)} for {len(X)} rows")
        matches = self.classes_ == np.asarray(y)[:, None]
        if not matches.any(axis=1).all():
            unknown = y[int(np.flatnonzero(~matches.any(axis=1))[0])]
            raise ValueError(f"y holds a label that the fit did not see: {unknown}")
        return self._poses(X, matches.argmax(axis=1))

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the squared distance of each row to each prototype, class by class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes * n_poses)
            ``reshape(-1, n_classes, n_poses)`` has classes and poses along axes of their own.
        """
        X = self._check_rows(X)
        return self._by_block((X,), self._fitted().squared, (self._n_features_out,), np.float64)

    @property
    def _n_features_out(self) -> int:
        return int(np.prod(self.prototypes_.shape[:2]))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` returns: ``energy_<class>_<pose>``, poses counted from 0.

        Parameters
        ----------
        input_features : array-like of str, optional
            Only checked against the names of the fit.

        Returns
        -------
        ndarray of str objects
        """
        super().get_feature_names_out(input_features)
        names = [f"energy_{label}_{pose}" for label in self.classes_ for pose in range(self.prototypes_.shape[1])]
        return np.array(names, dtype=object)

    def _summary(self) -> Summary:
        return prototypes_summary(self)


def _filled(poses: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Repeat the poses in turn until there are `most` prototypes."""
    return poses[np.arange(most) % len(poses)]
