"""Interfaces of the loop: a model (`Family`) and a way to choose bounds (`Policy`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine.latents import Latent, as_soft, entropies, expected

Theta = TypeVar("Theta")


class Family(Protocol[Theta]):
    r"""A model as the engine sees it.

    It minimises, over its parameters,

    .. math:: F(\theta) = R(\theta) - \sum_i \frac{w_i}{\beta} \log\sum_z e^{-\beta E_i(z;\theta)}.

    `theta` is the family's own: the engine never looks inside, so it may carry what a solver wants to remember.

    A family may also offer ``tight_pass(theta, block) -> (free energy, Bound)``, a fused kernel that is used whenever
    no latent values are needed; ``settled(old, new, tight) -> bool``, asked after a step with the tightest bound in
    place of the loop's `tol`, with the tightest bound at `new`; and ``slack``, what rounding may add to an objective
    beyond a billionth of it. Where it knows units by their numbers, it offers ``restricted(mask) -> Family``, the same
    family for which only the units that a mask names count: else a part of the units is given to it as other blocks.
    ``together`` is how many consecutive units, blocks holding them whole, are of one sample, which folds do not part.
    """

    beta: float
    """Inverse temperature; infinity for hard latents."""
    n_states: int

    def energies(self, theta: Theta, block: Block) -> NDArray[Any]:
        """Return ``E_i(z; theta)``, shape (rows, n_states), +inf where a state is absent, unweighted."""
        ...

    def statistics(self, block: Block, q: Latent, theta: Theta | None) -> NDArray[Any]:
        """Return weighted sums over units, linear in `q`; they may be taken about `theta`, None for a first bound."""
        ...

    def solve(self, s: NDArray[Any], theta: Theta | None, data: Chunks) -> tuple[Theta, float]:
        """Return the argmin of ``penalty + <s, E>`` and its value.

        The value must not lie above that at `theta`, the parameters at which the statistics were made.
        """
        ...

    def penalty(self, theta: Theta) -> float:
        """Return ``R(theta)``."""
        ...


@dataclass(frozen=True)
class Bound:
    """All of an upper bound that the loop needs: ``b(theta) = penalty + <statistics, E(theta)> - entropy``.

    Bounds form a convex set, and along a blend the excess is exactly linear.

    Attributes
    ----------
    statistics : ndarray
    entropy : float
        ``sum_i w_i H(q_i) / beta``, zero for hard latents.
    excess : float
        ``b - F`` at the parameters where it was made; NaN if it was made at none.
    distance : float
        Number of units whose latent value differs from the tightest bound's (half the total variation where soft).
    """

    statistics: NDArray[Any]
    entropy: float
    excess: float
    distance: float = 0.0

    def __add__(self, other: Bound) -> Bound:
        return Bound(
            self.statistics + other.statistics,
            self.entropy + other.entropy,
            self.excess + other.excess,
            self.distance + other.distance,
        )

    def __rmul__(self, share: float) -> Bound:
        return Bound(share * self.statistics, share * self.entropy, share * self.excess, share * self.distance)


@dataclass(frozen=True)
class Sweep:
    """What one pass over the data returns: the free energy, the tightest bound and the proposed one."""

    free: float
    tight: Bound
    drawn: Bound

    def __add__(self, other: Sweep) -> Sweep:
        drawn = self.drawn + other.drawn
        return Sweep(self.free + other.free, drawn if self.drawn is self.tight else self.tight + other.tight, drawn)


@dataclass
class View:
    """One block as a policy sees it, at the current parameters.

    Attributes
    ----------
    block : Block
    energies : ndarray of shape (rows, n_states)
    free : ndarray of shape (rows,)
        Free energies.
    tight : latent values of the tightest bound
    beta : float
    seed, draw : int
        What a policy's noise is a function of, besides the unit.
    first_price : float
        Price of the first proposal: a price over it does not depend on the units of the energies.
    """

    block: Block
    energies: NDArray[Any]
    free: NDArray[Any]
    tight: Latent
    beta: float
    seed: int
    draw: int
    first_price: float = 1.0

    @property
    def least(self) -> NDArray[Any]:
        """Smallest energy of each unit."""
        return self.free if np.isinf(self.beta) else self.energies.min(axis=1)

    @property
    def weights(self) -> NDArray[np.float64] | None:
        return self.block.weights

    @cached_property
    def best(self) -> NDArray[np.int32]:
        """State of smallest energy of each unit."""
        return self.tight if self.tight.ndim == 1 else self.energies.argmin(axis=1).astype(np.int32)

    def noise(self, width: int) -> NDArray[np.float64]:
        """Return uniforms in (0, 1), shape (rows, width), the same for a unit whatever block it lies in."""
        return self.block.noise(self.seed, self.draw, width)

    def bound(self, family: Family[Any], theta: Any, q: Latent) -> Bound:
        """Return the bound of latent values `q`, with its excess over the objective."""
        statistics, entropy = family.statistics(self.block, q, theta), self.entropy(q)
        if q is self.tight:
            return Bound(statistics, entropy, 0.0)
        return Bound(statistics, entropy, self.excess(q), self.distance(q))

    def entropy(self, q: Latent) -> float:
        """Return ``sum_i w_i H(q_i) / beta``."""
        return 0.0 if np.isinf(self.beta) or q.ndim == 1 else self.block.total(entropies(q)) / self.beta

    def excess(self, q: Latent) -> float:
        """Say how far the bound of latent values `q` lies above the objective."""
        return self.block.total(expected(q, self.energies) - self.free) - self.entropy(q)

    def distance(self, q: Latent) -> float:
        """Return the number of units that `q` places otherwise than the tightest bound does."""
        if q.ndim == 1:
            return float(np.count_nonzero(q != self.best))
        return float(np.abs(q - as_soft(self.tight, q.shape[1])).sum()) / 2


@runtime_checkable
class Policy(Protocol):
    """Chooses bounds.

    Every policy is a family of proposals with one parameter, the `price` of a unit of excess (1 / energy): the excess
    of a proposal falls as the price rises, and at an infinite price it is the tightest bound. One that keeps to the
    budget by itself may disregard the price.

    Attributes
    ----------
    eta : float
        Share of the gap that a bound must close, in (0, 1]; 1 leaves the tightest bound alone.
    hot_start : bool or None
        Whether the first bound, which is free, is drawn from hot latents; None: for hard latents only.
    """

    @property
    def eta(self) -> float: ...

    @property
    def hot_start(self) -> bool | None: ...

    def prepare(
        self, family: Family[Any], theta: Any, data: Chunks, seed: int, draw: int, bound: float = np.inf
    ) -> None:
        """Make the passes over the data that a draw needs beforehand.

        `bound` is the value at `theta` of the bound that it minimises: ``1 - eta`` times what it lies above the
        objective is the budget of this draw.
        """
        ...

    def propose(self, view: View, price: float) -> Latent:
        """Return latent values of the units of a block."""
        ...

    def keep(self, block: Block, q: Latent) -> None:
        """Remember, in ``block.memory``, what the next draw needs of these latent values, the first or proposed ones.

        Every fit begins with a call for every block, so that nothing of an earlier fit is left.
        """
        ...


FirstLatent = Callable[[Block], Latent]
