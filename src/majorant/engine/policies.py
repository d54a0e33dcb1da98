"""Bound policies: which of the valid bounds is minimised next. They do not depend on the model.

A proposal may exceed the budget: the loop blends it with the tightest bound until it does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels
from majorant._numbers import briefly
from majorant._validation import check_integer, check_real
from majorant.data.chunks import Block, Chunks
from majorant.engine.latents import Latent, as_soft, tightest
from majorant.engine.problem import Family, View

KEPT = "kept latents"
"""Key of the latent values of a block's units in its memory."""


@dataclass(frozen=True, kw_only=True)
class BoundPolicy:
    """Base of bound policies: checks `eta`, and does nothing in `prepare` and `keep`.

    Parameters
    ----------
    eta : float
        Share of the gap between bound and objective that every new bound must close, in (0, 1].
    hot_start : bool, optional
        Whether the first bound, which may be any, is drawn from hot latents. By default for hard latents only.
    """

    eta: float = 0.1
    hot_start: bool | None = None

    def __post_init__(self) -> None:
        eta: Any = self.eta
        hot_start: Any = self.hot_start
        if isinstance(eta, bool) or not isinstance(eta, Real):
            raise TypeError(f"eta must be a number in (0, 1]; got {briefly(eta)}")
        if not 0 < self.eta <= 1:
            raise ValueError(f"eta must lie in (0, 1]; got {briefly(self.eta)}")
        if not (hot_start is None or isinstance(hot_start, bool | np.bool_)):
            raise TypeError(f"hot_start must be True, False or None; got {briefly(hot_start)}")

    def prepare(
        self, family: Family[Any], theta: Any, data: Chunks, seed: int, draw: int, bound: float = np.inf
    ) -> None:
        """Do nothing: the policy needs no preparation."""

    def propose(self, view: View, price: float) -> Latent:
        """Return latent values of the units of a block, given the price of a unit of excess."""
        raise NotImplementedError(f"{type(self).__name__} must say how it proposes latent values")

    def keep(self, block: Block, q: Latent) -> None:
        """Do nothing: the policy keeps no state."""

    def renumbered(self, positions: NDArray[np.intp]) -> BoundPolicy:
        """Return the policy with unit `i` renumbered as ``positions[i]`` (-1: removed)."""
        return self

    def repeated(self, n_groups: int, size: int) -> BoundPolicy:
        """Return the policy repeated for each of `n_groups` groups of `size` units."""
        return self


def tilted(view: View, preference: NDArray[Any], price: float) -> Latent:
    """Return the latent values that maximise a preference minus the price of the excess.

    ``argmax_q <q, preference> - price * excess(q)``, the posterior of the energies ``E - preference / price``.
    """
    return tightest(view.energies - preference / price, view.beta)[1]


@dataclass(frozen=True, kw_only=True)
class Tightest(BoundPolicy):
    """The bound that touches the objective: EM, k-means, the concave-convex procedure.

    Parameters
    ----------
    eta, hot_start
        See `BoundPolicy`. Keep eta at 1.0: the bound closes the whole gap.
    """

    eta: float = 1.0

    def propose(self, view: View, price: float) -> Latent:
        return view.tight


@dataclass(frozen=True)
class GibbsLimit(BoundPolicy):
    """Random valid bounds, drawn directly rather than by a random walk.

    Hard latents are drawn from ``softmax(-price * regret)``, the distribution of one unit in a long uniform walk over
    all valid bounds; soft ones are the posterior under Gumbel noise of that size. The default random policy.

    Parameters
    ----------
    eta, hot_start
        See `BoundPolicy`; eta is 0.1 by default.

    References
    ----------
    .. [1] S. N. Parizi, K. He, S. Sclaroff, P. Felzenszwalb, "Generalized Majorization-Minimization", section 4.2.
    """

    def propose(self, view: View, price: float) -> Latent:
        if not np.isinf(view.beta):
            gumbel = -np.log(-np.log(view.noise(view.energies.shape[1])))
            return tilted(view, gumbel, price)
        z = np.empty(len(view.block), dtype=np.int32)
        energies = np.ascontiguousarray(view.energies)
        _kernels.draw(energies, view.weights, view.free, view.tight, price, view.noise(1)[:, 0], z)
        return z


@dataclass(frozen=True, kw_only=True)
class Tempered(BoundPolicy):
    """Deterministic annealing inside the valid set: the posterior at a higher temperature.

    Soft latents: ``q`` proportional to ``exp(-tau beta E)`` with ``tau = price / (1 + price)``; hard ones:
    ``exp(-price E)``, soft bounds of a hard objective. The recommended policy for soft latents.

    Parameters
    ----------
    eta, hot_start
        See `BoundPolicy`; eta is 0.03 by default.
    """

    eta: float = 0.03

    def propose(self, view: View, price: float) -> Latent:
        heat = price if np.isinf(view.beta) else view.beta * price / (1 + price)
        return tightest(view.energies, heat)[1]


@dataclass(frozen=True, kw_only=True)
class RandomWalk(BoundPolicy):
    """The paper's random bounds: a uniform walk over the hard latents within the budget.

    Each block has its share of the budget, so the result depends on the division of the data into blocks.

    Parameters
    ----------
    eta, hot_start
        See `BoundPolicy`; eta is 0.1 by default.
    n_sweeps : int, default=20
        Number of steps of the walk per unit.

    References
    ----------
    .. [1] S. N. Parizi, K. He, S. Sclaroff, P. Felzenszwalb, "Generalized Majorization-Minimization", section 4.2.
    """

    n_sweeps: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("n_sweeps", self.n_sweeps, low=1)

    def propose(self, view: View, price: float) -> Latent:
        rows = len(view.block)
        steps = self.n_sweeps * rows
        random = np.random.default_rng([view.seed, view.draw, view.block.first])
        z = view.best.copy()
        least = np.ascontiguousarray(view.least)
        sites = random.integers(0, rows, steps)
        weight = rows if view.weights is None else float(view.weights.sum())
        _kernels.walk(
            np.ascontiguousarray(view.energies), view.weights, least, weight / price, sites, random.random(steps), z
        )
        return z


@dataclass(frozen=True, kw_only=True)
class GrowingSubset(BoundPolicy):
    """Random units keep their last latent value; the others, more as the budget shrinks, get the best one.

    Meant for latent SVMs, whose first latents come from the user; for other families it stays near the start. It is the
    only policy that keeps latents between passes.

    Parameters
    ----------
    eta, hot_start
        See `BoundPolicy`; eta is 0.1 by default.
    schedule : tuple of float, optional
        Shares of the units that get the best latent value in the first bounds, in (0, 1], the last one in all that
        follow: the growing subsets of [1]_, which does not say how they grow. By default as few as the budget allows.

    References
    ----------
    .. [1] S. N. Parizi, K. He, S. Sclaroff, P. Felzenszwalb, "Generalized Majorization-Minimization", section 5.2.
    """

    schedule: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule is not None:
            if not isinstance(self.schedule, tuple) or not self.schedule:
                raise TypeError(
                    f"schedule must be a tuple of shares such as (0.1, 0.5, 1.0); got {briefly(self.schedule)}"
                )
            for share in self.schedule:
                if check_real("schedule", share, low=0.0, high=1.0) == 0:
                    raise ValueError(f"schedule must hold shares above 0 and at most 1; got {briefly(self.schedule)}")

    def propose(self, view: View, price: float) -> Latent:
        last, tight = view.block.memory[KEPT], view.tight
        relative = price / view.first_price
        moving = relative / (1 + relative)
        if self.schedule is not None:
            moving = self.schedule[min(view.draw, len(self.schedule)) - 1]
        stays = view.noise(1)[:, 0] > moving
        if last.ndim == tight.ndim == 1:
            return np.where(stays, last, tight)
        n_states = view.energies.shape[1]
        return np.where(stays[:, None], as_soft(last, n_states), as_soft(tight, n_states))

    def keep(self, block: Block, q: Latent) -> None:
        block.memory[KEPT] = q


CHOSEN = "chosen latents"
"""Key of latent values chosen for all units together, in the memory of their block."""


@runtime_checkable
class Bias(Protocol):
    """An application's preference among bounds, state by state.

    It may also offer ``keep(block, q)``, like a policy, to remember latent values.
    """

    def prepare(self, family: Family[Any], theta: Any, data: Chunks) -> None:
        """Make the passes over the data that the preference needs, before every draw."""
        ...

    def prefer(self, view: View) -> NDArray[Any]:
        """Return the preference for each state: finite, of order one, or -inf for a state that must not be chosen.

        The shape is (rows, n_states), or (1, n_states) if it is the same for all units.
        """
        ...

    def renumbered(self, positions: NDArray[np.intp]) -> Bias:
        """Return the preference with unit `i` renumbered as ``positions[i]`` (-1: removed)."""
        ...


@runtime_checkable
class WholeBias(Protocol):
    """An application's preference among the latent values of all units together."""

    def choose(self, view: View, budget: float) -> Latent:
        """Return the best latent values of all units with an excess of at most `budget`.

        `view` has all units as one block without columns. The loop computes the excess again: latent values that exceed
        the budget are blended with the tightest ones.
        """
        ...

    def renumbered(self, positions: NDArray[np.intp]) -> WholeBias:
        """Return the preference with unit `i` renumbered as ``positions[i]`` (-1: removed)."""
        ...


@dataclass(frozen=True)
class Biased(BoundPolicy):
    """The best valid bound by an application's preference.

    Parameters
    ----------
    bias : Bias or WholeBias
        `Balance()`, `PairConstraints(...)`, `MultiFold()`, `Coherence(...)`, or a user's object: with the three methods
        of a `Bias`, for preferences by unit, or the two of a `WholeBias`, which gets the energies of all units and
        needs memory for them.
    eta, hot_start
        See `BoundPolicy`; eta is 0.1 by default.

    References
    ----------
    .. [1] S. N. Parizi, K. He, S. Sclaroff, P. Felzenszwalb, "Generalized Majorization-Minimization", section 4.3.
    """

    bias: Bias | WholeBias

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_bias(self.bias)

    def prepare(
        self, family: Family[Any], theta: Any, data: Chunks, seed: int, draw: int, bound: float = np.inf
    ) -> None:
        if isinstance(self.bias, Bias):
            self.bias.prepare(family, theta, data)
        else:
            _choose(self.bias, family, theta, data, seed, draw, self.eta, bound)

    def propose(self, view: View, price: float) -> Latent:
        if isinstance(self.bias, Bias):
            if view.preference is None:
                view.preference = _preferred(self.bias.prefer(view), view, self.bias)
            return tilted(view, view.preference, price)
        chosen: Latent = view.block.memory[CHOSEN]
        return chosen

    def keep(self, block: Block, q: Latent) -> None:
        remember = getattr(self.bias, "keep", None)
        if remember is not None:
            remember(block, q)

    def renumbered(self, positions: NDArray[np.intp]) -> Biased:
        return replace(self, bias=self.bias.renumbered(positions))

    def repeated(self, n_groups: int, size: int) -> Biased:
        """Repeat a bias that names units of the first group for all groups, by its ``repeated(n_groups, size)``."""
        again = getattr(self.bias, "repeated", None)
        return self if again is None else replace(self, bias=again(n_groups, size))


def _check_bias(bias: Any) -> None:
    """Raise TypeError for an object that lacks methods of a bias, naming them."""
    if isinstance(bias, type):
        name = bias.__name__
        raise TypeError(f"bias must be an object such as Balance(); got the class {name} itself: write {name}(...)")
    of_states = ("prepare(family, theta, data)", "prefer(view)", "renumbered(positions)")
    of_all = ("choose(view, budget)", "renumbered(positions)")
    wanted = of_all if _has(bias, of_all[0]) else of_states
    lacking = [method for method in wanted if not _has(bias, method)]
    if len(lacking) == len(wanted):
        raise TypeError(f"bias must be an object such as Balance(); got {briefly(bias)}")
    if lacking:
        raise TypeError(
            f"{type(bias).__name__} lacks {' and '.join(lacking)}: a bias has the methods {', '.join(of_states)}, "
            f"or the methods {', '.join(of_all)}"
        )


def _has(bias: Any, method: str) -> bool:
    return callable(getattr(bias, method.partition("(")[0], None))


def _preferred(given: Any, view: View, bias: Bias) -> NDArray[Any]:
    """Check the preferences of a bias; return them as a table."""
    n, n_states = view.energies.shape
    name = type(bias).__name__
    expected = f"{name}.prefer must give numbers of shape ({n}, {n_states}), or (1, {n_states}) for all rows alike"
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"{expected}; got rows of unequal length") from error
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{expected}; got {type(given).__name__ if array.dtype == object else array.dtype}")
    if array.shape not in ((n, n_states), (1, n_states)):
        raise ValueError(f"{expected}; got shape {array.shape}")
    if not np.isfinite(array).all():
        array = np.broadcast_to(array, (n, n_states))
        bad = np.isnan(array) | (array == np.inf)
        if bad.any():
            row, state = np.argwhere(bad)[0]
            raise ValueError(
                f"{name}.prefer must give finite numbers, or -inf for never; unit {view.block.first + row} has "
                f"{array[row, state]} at state {state}"
            )
        left = (np.isfinite(array) & np.isfinite(view.energies)).any(axis=1)
        if not left.all():
            unit = view.block.first + int(left.argmin())
            raise ValueError(f"{name}.prefer must give finite numbers, or -inf for never; unit {unit} is left no state")
    return array


def _choose(
    bias: WholeBias,
    family: Family[Any],
    theta: Any,
    data: Chunks,
    seed: int,
    draw: int,
    eta: float,
    bound: float,
) -> None:
    """Let a bias choose latent values for all units, and store them for the pass that draws."""
    energies = np.empty((data.n_units, family.n_states))
    weights = np.ones(data.n_units)
    memories: dict[int, tuple[slice, dict[str, Any]]] = {}

    def visit(block: Block) -> float:
        table = family.energies(theta, block)
        energies[block.at] = table
        if block.weights is not None:
            weights[block.at] = block.weights
        memories[block.first] = block.at, block.memory
        return block.total(tightest(table, family.beta)[0])

    objective = family.penalty(theta) + data.map_sum(visit)
    free, tight = tightest(energies, family.beta)
    view = View(Block(0, (energies,), weights), energies, free, tight, family.beta, seed, draw)
    budget = (1 - eta) * (bound - objective)
    chosen = _checked(bias.choose(view, budget), view, bias) if budget > 0 else tight
    for at, memory in memories.values():
        memory[CHOSEN] = chosen[at]


def _checked(q: Any, view: View, bias: WholeBias) -> Latent:
    """Check latent values, and convert them to the form that families expect."""
    n, n_states = view.energies.shape
    array = np.asarray(q)
    name = type(bias).__name__
    if array.shape == (n,) and array.dtype.kind in "iu":
        if array.min() < 0 or array.max() >= n_states:
            raise ValueError(f"{name}.choose gave states from {array.min()} to {array.max()}; there are {n_states}")
        return array.astype(np.int32, copy=False)
    if array.shape == (n, n_states) and (array >= 0).all() and np.allclose(array.sum(axis=1), 1.0):
        return array
    raise ValueError(
        f"{name}.choose must give a whole number per unit, shape ({n},), or rows of shares that sum to one, shape "
        f"({n}, {n_states}); got {array.dtype} of shape {array.shape}"
    )


def check_bounds(value: Any) -> None:
    """Raise TypeError for a value that is neither a bound policy nor None."""
    if value is not None and not isinstance(value, BoundPolicy):
        raise TypeError(f"bounds must be a bound policy such as Tempered(eta=0.1), or None; got {briefly(value)}")
