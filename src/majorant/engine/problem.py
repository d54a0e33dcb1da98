"""Interfaces of the loop: a model (`Family`) and a way to choose bounds (`Policy`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine.latents import Latent, as_soft, entropies, expected

Theta = TypeVar("Theta")


class Family(Protocol[Theta]):
    r"""The interface of a model for the bound loop.

    It minimises, over its parameters,

    .. math:: F(\theta) = R(\theta) - \sum_i \frac{w_i}{\beta} \log\sum_z e^{-\beta E_i(z;\theta)}.

    The engine does not look into `theta`, so it may also hold the state of a solver.

    A family may also offer ``tight_pass(theta, block) -> (free energy, Bound)``, a fused kernel used whenever no latent
    values are needed; ``settled(old, new, tight) -> bool``, a test of convergence after a step with the tightest bound,
    in place of the loop's `tol`; and ``slack``, a bound on rounding errors of the objective beyond a billionth of it. A
    family that knows units by their numbers offers ``restricted(mask) -> Family``, in which only the units of a mask
    count; other families get a part of the units as other blocks. ``together`` is the number of consecutive units of
    one sample, which blocks and folds do not separate.
    """

    beta: float
    """Inverse temperature; infinity for hard latents."""
    n_states: int

    def energies(self, theta: Theta, block: Block) -> NDArray[Any]:
        """Return ``E_i(z; theta)``, shape (rows, n_states), +inf where a state is absent, unweighted."""
        ...

    def statistics(self, block: Block, q: Latent, theta: Theta | None) -> NDArray[Any]:
        """Return weighted sums over units, linear in `q`, possibly about `theta` (None for a first bound)."""
        ...

    def solve(self, s: NDArray[Any], theta: Theta | None, data: Chunks) -> tuple[Theta, float]:
        """Return the argmin of ``penalty + <s, E>`` and its value.

        The value must not be above that at `theta`, the parameters at which the statistics were computed.
        """
        ...

    def penalty(self, theta: Theta) -> float:
        """Return ``R(theta)``."""
        ...


@dataclass(frozen=True)
class Bound:
    """An upper bound on the objective: ``b(theta) = penalty + <statistics, E(theta)> - entropy``.

    Bounds form a convex set, and the excess of a blend is exactly linear.

    Attributes
    ----------
    statistics : ndarray
    entropy : float
        ``sum_i w_i H(q_i) / beta``, zero for hard latents.
    excess : float
        ``b - F`` at the parameters where the bound was made; NaN if there were none.
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
    """Results of one pass over the data: the free energy, the tightest bound and the proposed one."""

    free: float
    tight: Bound
    drawn: Bound

    def __add__(self, other: Sweep) -> Sweep:
        drawn = self.drawn + other.drawn
        return Sweep(self.free + other.free, drawn if self.drawn is self.tight else self.tight + other.tight, drawn)


@dataclass
class View:
    """One block at the current parameters, as given to a policy.

    Attributes
    ----------
    block : Block
    energies : ndarray of shape (rows, n_states)
    free : ndarray of shape (rows,)
        Free energies.
    tight : latent values of the tightest bound
    beta : float
    seed, draw : int
        Seed and number of the draw, which with the unit determine a policy's noise.
    first_price : float
        Weight of the data over the first budget; relative to it prices do not depend on the units of energies.
    preference : ndarray, optional
        What a bias prefers, kept for proposals at other prices.
    drawn : dict
        The noise by its width, kept likewise.
    """

    block: Block
    energies: NDArray[Any]
    free: NDArray[Any]
    tight: Latent
    beta: float
    seed: int
    draw: int
    first_price: float = 1.0
    preference: NDArray[Any] | None = None
    drawn: dict[int, NDArray[np.float64]] = field(default_factory=dict)

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
        """Return uniform numbers in (0, 1), shape (rows, width), which for a unit do not depend on its block."""
        if width not in self.drawn:
            self.drawn[width] = self.block.noise(self.seed, self.draw, width)
        return self.drawn[width]

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
        """Return the difference between the bound of latent values `q` and the objective."""
        return self.block.total(expected(q, self.energies) - self.free) - self.entropy(q)

    def distance(self, q: Latent) -> float:
        """Return the number of units whose latent value in `q` differs from the tightest bound's."""
        if q.ndim == 1:
            return float(np.count_nonzero(q != self.best))
        return float(np.abs(q - as_soft(self.tight, q.shape[1])).sum()) / 2


@runtime_checkable
class Policy(Protocol):
    """The interface of a bound policy, which chooses bounds.

    A policy is a family of proposals with one parameter, the `price` of a unit of excess (1 / energy): the excess of a
    proposal decreases with the price, and at an infinite price it is the tightest bound. A policy that respects the
    budget by itself may ignore the price.

    Attributes
    ----------
    eta : float
        Share of the gap that a bound must close, in (0, 1]; with 1 only the tightest bound is possible.
    hot_start : bool or None
        Whether the first bound, which may be any, is drawn from hot latents; None: for hard latents only.
    """

    @property
    def eta(self) -> float: ...

    @property
    def hot_start(self) -> bool | None: ...

    def prepare(
        self, family: Family[Any], theta: Any, data: Chunks, seed: int, draw: int, bound: float = np.inf
    ) -> None:
        """Make the passes over the data that a draw needs beforehand.

        `bound` is the value at `theta` of the bound that it minimises. The budget of this draw is ``1 - eta`` times its
        excess over the objective.
        """
        ...

    def propose(self, view: View, price: float) -> Latent:
        """Return latent values of the units of a block."""
        ...

    def keep(self, block: Block, q: Latent) -> None:
        """Store in ``block.memory`` what the next draw needs of these latent values, the first or proposed ones.

        Every fit begins with a call for every block, which replaces the memory of an earlier fit.
        """
        ...


FirstLatent = Callable[[Block], Latent]
