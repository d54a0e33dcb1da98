"""Preferences among valid bounds, for `Biased`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from majorant._numbers import briefly
from majorant._validation import check_choice, check_integer
from majorant.data.chunks import Block, Chunks
from majorant.engine.latents import Latent, collect, tightest
from majorant.engine.policies import KEPT
from majorant.engine.problem import Family, View

STRENGTH = 10.0
"""Initial weight of energies under the fit without a unit, relative to those under the fit to all."""


class Balance:
    """Preference for states that have less than an equal share of the weight.

    The preference for state z is ``1 - n_z L / n``, minus the slope of ``sum_z (n_z L / n)^2 / 2``, where ``n_z`` is
    the weight that the tightest bound gives to state z of L.
    """

    def __init__(self) -> None:
        self._preference: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        return "Balance()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Balance)

    def __hash__(self) -> int:
        return hash(Balance)

    def prepare(self, family: Family[Any], theta: Any, data: Chunks) -> None:
        """Compute the weight of each state, by one pass over the data."""

        def sizes(block: Block) -> NDArray[np.float64]:
            q = tightest(family.energies(theta, block), family.beta)[1]
            return collect(q, np.ones((len(block), 1)), family.n_states, block.weights)[:, 0]

        n = data.map_sum(sizes)
        self._preference = 1.0 - n * len(n) / n.sum()

    def prefer(self, view: View) -> NDArray[Any]:
        """Return the preference for each state, shape (1, n_states)."""
        if self._preference is None:
            raise RuntimeError("Balance was asked for a preference before prepare()")
        return self._preference[None, :]

    def renumbered(self, positions: NDArray[np.intp]) -> Balance:
        """Return the preference unchanged, as it names no units."""
        return Balance()


class PairConstraints:
    """Preference for equal states of units that belong together, and different states of units that do not.

    Units linked by `must_link`, directly or through others, form groups. Before every draw each group gets the state of
    least total energy that is not taken by a group that it may not join, groups with most to lose first; its units
    prefer that state. As every bound is valid, a constraint is violated if it would cost more than the budget.

    Parameters
    ----------
    must_link, cannot_link : array-like of shape (n_pairs, 2)
        Numbers of units.
    """

    def __init__(self, must_link: ArrayLike = (), cannot_link: ArrayLike = ()) -> None:
        self.must_link = pairs_of_units(must_link, "must_link")
        self.cannot_link = pairs_of_units(cannot_link, "cannot_link")
        self.units, members = np.unique(
            np.concatenate([self.must_link.ravel(), self.cannot_link.ravel()]), return_inverse=True
        )
        linked, apart = np.split(members.reshape(-1, 2), [len(self.must_link)])
        n = len(self.units)
        # a sparse array would keep indices of 64 bits, which scipy 1.11 does not search
        graph = coo_matrix((np.ones(len(linked)), (linked[:, 0], linked[:, 1])), shape=(n, n))
        self._group: NDArray[np.intp] = connected_components(graph, directed=False)[1].astype(np.intp)
        self._apart = self._group[apart]
        clash = np.flatnonzero(self._apart[:, 0] == self._apart[:, 1])
        if len(clash):
            a, b = self.cannot_link[clash[0]]
            raise ValueError(f"units {a} and {b} are to be linked (maybe through others) and kept apart: drop one pair")
        self._target: NDArray[np.intp] | None = None

    def __repr__(self) -> str:
        return f"PairConstraints({len(self.must_link)} must-link, {len(self.cannot_link)} cannot-link pairs)"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PairConstraints)
            and np.array_equal(self.must_link, other.must_link)
            and np.array_equal(self.cannot_link, other.cannot_link)
        )

    def __hash__(self) -> int:
        return hash((self.must_link.tobytes(), self.cannot_link.tobytes()))

    def prepare(self, family: Family[Any], theta: Any, data: Chunks) -> None:
        """Choose a state for each group, by one pass over the data."""
        if len(self.units) and self.units[-1] >= data.n_units:
            raise ValueError(f"a pair names unit {self.units[-1]}, but there are {data.n_units} units, numbered from 0")

        def group_energies(block: Block) -> NDArray[np.float64]:
            at = slice(*np.searchsorted(self.units, [block.first, block.first + len(block)]))
            out = np.zeros((self._group.max(initial=-1) + 1, family.n_states))
            rows = self.units[at] - block.first
            if len(rows):
                np.add.at(out, self._group[at], family.energies(theta, block)[rows])
            return out

        energies = data.map_sum(group_energies)
        self._target = self._choose(energies)[self._group]

    def _choose(self, energies: NDArray[np.float64]) -> NDArray[np.intp]:
        """Choose a state for each group greedily, groups with most to lose first."""
        enemies: list[list[int]] = [[] for _ in energies]
        for a, b in self._apart:
            enemies[a].append(b)
            enemies[b].append(a)
        ordered = np.sort(energies, axis=1)
        margin = ordered[:, min(1, energies.shape[1] - 1)] - ordered[:, 0]
        chosen = np.full(len(energies), -1, dtype=np.intp)
        for g in np.argsort(-margin, kind="stable"):
            taken = [chosen[e] for e in enemies[g] if chosen[e] >= 0]
            open_energies = energies[g].copy()
            if len(set(taken)) < len(open_energies):
                open_energies[taken] = np.inf
            chosen[g] = open_energies.argmin()
        return chosen

    def prefer(self, view: View) -> NDArray[Any]:
        """Return one for the state of each unit's group, else zero, shape (rows, n_states)."""
        if self._target is None:
            raise RuntimeError("PairConstraints was asked for a preference before prepare()")
        first, rows = view.block.first, len(view.block)
        at = slice(*np.searchsorted(self.units, [first, first + rows]))
        preference = np.zeros((rows, view.energies.shape[1]))
        preference[self.units[at] - first, self._target[at]] = 1.0
        return preference

    def renumbered(self, positions: NDArray[np.intp]) -> PairConstraints:
        """Return the pairs with unit `i` renumbered as ``positions[i]``; pairs of removed units (-1) are dropped."""
        if len(self.units) and self.units[-1] >= len(positions):
            raise ValueError(f"a pair names row {self.units[-1]}, but there are {len(positions)} rows, numbered from 0")
        must, apart = positions[self.must_link], positions[self.cannot_link]
        equal = np.flatnonzero((apart[:, 0] == apart[:, 1]) & (apart[:, 0] >= 0))
        if len(equal):
            a, b = self.cannot_link[equal[0]]
            raise ValueError(f"rows {a} and {b} are equal, so nothing can keep them apart: drop this cannot-link pair")
        return PairConstraints(must[(must >= 0).all(axis=1)], apart[(apart >= 0).all(axis=1)])

    def repeated(self, n_groups: int, size: int) -> PairConstraints:
        """Return the pairs repeated in each group of units; pairs beyond the first group are unchanged."""
        if self.units.max(initial=0) >= size:
            return self
        return PairConstraints(*(in_groups(pairs, n_groups, size) for pairs in (self.must_link, self.cannot_link)))


class MultiFold:
    r"""Preference, for every unit, for states of low energy under a model fitted without it.

    Units are assigned to folds at random. Before every draw, the family is fitted to the units outside of each fold,
    with the latent values of the last proposal, starting from the previous fit of that fold; the preference for state
    `z` of a unit in fold `k` is minus its regret under that fit,

    .. math::
        G_i(z) = -10\, p \, \bigl[E_i(z; \theta_{-k}) - \min_{z'} E_i(z'; \theta_{-k})\bigr], \qquad
        \theta_{-k} = \arg\min_\theta R(\theta) + \sum_{j \notin k} E_j(z_j; \theta),

    where `p` is the price of energy at the first proposal, the weight of the data divided by the budget. So the units
    of energy do not matter, and initially a fit without the unit counts ten times as much as the fit to all.

    This prevents a unit from confirming its own latent value, as in a latent SVM with many features, which memorises
    each sample's first region. Multi-fold learning has no guarantee of descent by itself; among valid bounds it has.

    Parameters
    ----------
    n_folds : int, default=10
        Number of folds, at least 2. With as many as units, or more, each unit is left out alone.
    random_state : int, default=0
        Seed of the assignment to folds.
    loss : {"energy", "hinge"}, default="energy"
        What is low under the fit without the unit: the energy :math:`E_i(z)`, as above; or, as in [2]_, the hinge loss
        of the unit's own label with latent value z, in place of the bracket. All values that tell the label from the
        others by the full margin are then equally good. Only for latent SVMs with one latent value a sample.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not an integer, or out of range.

    References
    ----------
    .. [1] R. G. Cinbis, J. Verbeek, C. Schmid, "Weakly supervised object localization with multi-fold multiple instance
       learning", IEEE Transactions on Pattern Analysis and Machine Intelligence, 2016.
    .. [2] S. N. Parizi, K. He, S. Sclaroff, P. Felzenszwalb, "Generalized Majorization-Minimization", section 4.3.

    Examples
    --------
    >>> import majorant as mj
    >>> X = [[0.0], [0.2], [1.0], [1.1], [5.0], [5.2]]
    >>> bounds = mj.Biased(mj.MultiFold(3))
    >>> model = mj.KMeans(2, init="forgy", bounds=bounds, random_state=0).fit(X)
    >>> round(model.inertia_, 4)
    0.9475
    """

    def __init__(self, n_folds: int = 10, random_state: int = 0, loss: str = "energy") -> None:
        check_integer("n_folds", n_folds, low=2)
        check_integer("random_state", random_state, low=0)
        check_choice("loss", loss, ["energy", "hinge"])
        self.n_folds = n_folds
        self.random_state = random_state
        self.loss = loss
        self._fits: _FoldFits | None = None

    def __repr__(self) -> str:
        seed = "" if self.random_state == 0 else f", {self.random_state}"
        loss = "" if self.loss == "energy" else f", loss={self.loss!r}"
        return f"MultiFold({self.n_folds}{seed}{loss})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MultiFold) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash(self.__reduce__())

    def __reduce__(self) -> tuple[Any, ...]:
        # Fits belong to the data that they were made on.
        return MultiFold, (self.n_folds, self.random_state, self.loss)

    def keep(self, block: Block, q: Latent) -> None:
        """Keep the latent values for the next fits."""
        block.memory[KEPT] = q

    def prepare(self, family: Family[Any], theta: Any, data: Chunks) -> None:
        """Fit without each fold, by passes over the other units."""
        if self._fits is None or self._fits.data is not data:
            together = int(getattr(family, "together", 1))
            n = data.n_units // together
            n_folds = min(self.n_folds, n)
            deal = np.repeat(np.random.default_rng(self.random_state).permutation(n) % n_folds, together)
            self._fits = _FoldFits(family, data, deal, n_folds, self.loss)
        self._fits.renew(theta)

    def prefer(self, view: View) -> NDArray[Any]:
        """Return minus the regrets under the fits without the units, shape (rows, n_states)."""
        if self._fits is None:
            raise RuntimeError("MultiFold was asked for a preference before prepare()")
        # Times the first price, so that units of energy do not matter.
        return -STRENGTH * view.first_price * self._fits.regrets(view)

    def renumbered(self, positions: NDArray[np.intp]) -> MultiFold:
        """Return the bias unchanged, as it names no units."""
        return MultiFold(self.n_folds, self.random_state, self.loss)


class _FoldFits:
    """A family fitted to all units but those of each fold.

    The first fits start without a solver's state, which may not be valid for a part of the units.
    """

    def __init__(self, family: Family[Any], data: Chunks, fold: NDArray[np.intp], n_folds: int, loss: str) -> None:
        self.data = data
        losses = family.energies if loss == "energy" else getattr(family, "hinge_losses", None)
        if losses is None:
            raise ValueError(f"{type(family).__name__} has no hinge loss: use MultiFold(loss='energy')")
        self._losses: Callable[[Any, Block], NDArray[Any]] = losses
        self._family = family
        self._fold = fold
        self._thetas: list[Any] = [None] * n_folds
        self._restrict = getattr(family, "restricted", None)

    def renew(self, theta: Any) -> None:
        """Fit again, with the stored latent values (or else the tightest ones at `theta`)."""
        for k, old in enumerate(self._thetas if len(self._thetas) > 1 else ()):
            others = self._fold != k
            if self._restrict is None:
                family, part = self._family, self.data.part(others)
            else:
                family, part = self._restrict(others), self.data
            s = self.data.map_sum(partial(self._statistics, family, others, old, theta))
            self._thetas[k] = family.solve(s, old, part)[0]
            if part is not self.data:
                self.data.n_passes += part.n_passes

    def _statistics(
        self, family: Family[Any], others: NDArray[np.bool_], old: Any, theta: Any, block: Block
    ) -> NDArray[Any]:
        rows, q = others[block.at], block.memory.get(KEPT)
        if q is None:
            q = tightest(family.energies(theta, block), family.beta)[1]
        if self._restrict is not None:
            return family.statistics(block, q, old)
        return family.statistics(block.take(rows), q[rows], old) if rows.any() else np.zeros(())

    def regrets(self, view: View) -> NDArray[Any]:
        """Return the regrets of a block's units under the fits without them, (rows, n_states)."""
        out = np.zeros(view.energies.shape)
        fold = self._fold[view.block.at]
        for k in np.unique(fold).tolist() if len(self._thetas) > 1 else ():
            rows, theta = fold == k, self._thetas[k]
            if self._restrict is None:
                losses = self._losses(theta, view.block.take(rows))
            else:
                losses = self._losses(theta, view.block)[rows]
            out[rows] = losses - losses.min(axis=1, keepdims=True)
        return out


def in_groups(pairs: NDArray[np.intp], n_groups: int, size: int) -> NDArray[np.intp]:
    """Repeat pairs of the first `size` units in each of `n_groups` groups of units."""
    return np.asarray((np.arange(n_groups)[:, None, None] * size + pairs).reshape(-1, 2))


def pairs_of_units(pairs: ArrayLike | Sequence[Any], name: str) -> NDArray[np.intp]:
    """Check pairs of numbers of units; return them as an array of shape (n_pairs, 2)."""
    wanted = f"{name} must be pairs of unit numbers, an array of integers of shape (n_pairs, 2), from 0 upwards"
    try:
        array = np.asarray(pairs)
    except ValueError as error:
        raise ValueError(f"{wanted}; got rows of different lengths") from error
    if array.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":  # durations are integers to numpy
        raise ValueError(f"{wanted}; got {briefly(array)}" if array.size < 10 else f"{wanted}; got {_in_words(array)}")
    if array.min() < 0 or array.max() > np.iinfo(np.intp).max:
        raise ValueError(f"{wanted}; got {array.min() if array.min() < 0 else array.max()}")
    return array.astype(np.intp)


def _in_words(array: NDArray[Any]) -> str:
    return f"shape {array.shape} of {array.dtype}"
