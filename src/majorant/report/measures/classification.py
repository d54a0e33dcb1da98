"""The numbers of a classification's report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from majorant.models.discriminative_latent_classes.summary import n_described, telling_features
from majorant.report.fit import Fit, quotients


@dataclass(frozen=True)
class Confusion:
    """Rows of one class that are predicted as another, both by number."""

    truth: int
    taken_for: int
    rows: int


@dataclass(frozen=True)
class LatentClass:
    """A latent class."""

    number: int
    share: float  # of the rows
    labels: NDArray[np.float64]  # (n_classes,): probability of each class of the rows
    # (n_features,): Change of the log odds of the class with one standard deviation of each feature. None where the
    # model has no coefficients of features.
    speaks: NDArray[np.float64] | None

    def telling_features(self, sign: int = 0) -> list[int]:
        """Return features of positive (`sign` 1), negative (-1) or any (0) effect on the class, largest first."""
        return [] if self.speaks is None else telling_features(self.speaks, sign)


@dataclass(frozen=True)
class Classification(Fit):
    """Rows with known and predicted classes. Classes are numbers from 0 here and names on the page.

    Where rows are regions of samples, the classes are those of samples, and `unit` is "bag".
    """

    @property
    def unit(self) -> str:
        """The word for what has a class, in the singular."""
        return "row" if self.run.bags is None else "bag"

    @property
    def n_units(self) -> int:
        return len(self._labels)

    @cached_property
    def names(self) -> list[str]:
        """Name of each class."""
        return [str(label) for label in self.run.estimator.classes_]

    @property
    def n_classes(self) -> int:
        return len(self.names)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Mask of units whose class the model knows, which excludes classes without weight."""
        return np.isin(self._labels, self.run.estimator.classes_)

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """Number of units of each class (first axis) that are predicted as each (second axis)."""
        classes = self.run.estimator.classes_
        given = {} if self.run.bags is None else {"bags": self.run.bags}
        found = np.searchsorted(classes, self.run.estimator.predict(self.as_fitted, **given)[self.known])
        counts = np.bincount(self.truth * self.n_classes + found, minlength=self.n_classes**2)
        return counts.reshape(self.n_classes, self.n_classes)

    @cached_property
    def truth(self) -> NDArray[np.int64]:
        """Number of the class of each known unit."""
        return np.searchsorted(self.run.estimator.classes_, self._labels[self.known])

    @cached_property
    def probabilities(self) -> NDArray[np.float64] | None:
        """Probability of each class for each known unit; None for models without, and for bags."""
        if self.run.bags is not None or not hasattr(self.run.estimator, "predict_proba"):
            return None
        found = np.asarray(self.run.estimator.predict_proba(self.as_fitted), dtype=np.float64)
        return found[self.known]

    @property
    def base_rate(self) -> float:
        """Share of the largest class, which is right if all units are put into it."""
        return int(self.sizes.max()) / int(self.sizes.sum())

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each class."""
        return np.asarray(self.table.sum(axis=1))

    @property
    def right(self) -> int:
        """Number of rows that are predicted correctly."""
        return int(np.trace(self.table))

    @property
    def accuracy(self) -> float:
        return self.right / int(self.sizes.sum())

    @cached_property
    def recalls(self) -> NDArray[np.float64]:
        """Recall of each class."""
        return quotients(np.diag(self.table), self.sizes)

    @cached_property
    def precisions(self) -> NDArray[np.float64]:
        """Precision of each class, NaN where nothing is predicted as it."""
        return quotients(np.diag(self.table), self.table.sum(axis=0))

    @cached_property
    def confusions(self) -> list[Confusion]:
        """Confusions between classes, most rows first."""
        found = [Confusion(int(a), int(b), int(self.table[a, b])) for a, b in np.argwhere(self.table) if a != b]
        return sorted(found, key=lambda c: -c.rows)

    @cached_property
    def prototypes(self) -> list[NDArray[np.float64]] | None:
        """Prototypes of each class, (n_poses, d), in standard deviations from the mean; None if the model has none."""
        estimator = self.run.estimator
        if not hasattr(estimator, "prototypes_"):
            return None
        standard = quotients(estimator.prototypes_ - self.means, self.deviations)
        return [of_class[:n] for of_class, n in zip(standard, estimator.n_poses_, strict=True)]

    @cached_property
    def explained(self) -> NDArray[np.float64]:
        """Share of each feature's variance that lies between the prototypes, NaN on constant features."""
        estimator = self.run.estimator
        at = np.searchsorted(estimator.classes_, self._labels[self.known])
        own = estimator.prototypes_[at, estimator.poses_[self.known]]
        return self._explained_by(self.run.X[self.known], own)

    @cached_property
    def latent_classes(self) -> list[LatentClass] | None:
        """Latent classes with more than a few rows, by decreasing share; None if the model has none."""
        estimator = self.run.estimator
        if not hasattr(estimator, "class_label_distribution_"):
            return None
        contrasts = estimator.class_contrasts_
        return [
            LatentClass(
                k,
                float(estimator.class_weights_[k]),
                estimator.class_label_distribution_[k],
                None if contrasts is None else contrasts[k],
            )
            for k in range(n_described(estimator))
        ]

    @cached_property
    def _labels(self) -> NDArray[np.generic]:
        """The class of each unit; bags in the order in which they first appear."""
        if self.run.y is None:
            raise ValueError("the report of a classification needs the classes of the rows: give Run its y")
        if self.run.bags is None:
            return self.run.y
        return self.run.y[np.sort(np.unique(self.run.bags, return_index=True)[1])]
