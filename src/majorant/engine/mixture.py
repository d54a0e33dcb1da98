"""Mixtures as a density times a law of the states, which do not depend on each other.

A *density* gives the log density of each row in each state, and the sums over rows that determine its M-step. A *law*
gives the joint distribution of the states of rows. Both determine the log-likelihood, the responsibilities, EM and the
bounds.

Tables have shape (runs, components, rows): many mixtures are stepped together, and rows are contiguous in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine.descent import Seen, further
from majorant.engine.latents import Latent, as_soft
from majorant.engine.problem import Bound
from majorant.engine.runs import mapped
from majorant.engine.stretches import InStretches, pass_in_stretches
from majorant.registry import value_class

Array = NDArray[np.float64]
Table = NDArray[np.float64]
"""A table of shape (runs, components, rows)."""
Limits = tuple[float | Array, float]
"""Lower and upper limit of an estimate and of its intervals; the lower one may be an array, of the entries."""
Theta = TypeVar("Theta")
Phi = TypeVar("Phi")


class Density(Protocol[Theta]):
    """The interface of a density: how likely is a row in each state?

    Parameters are a batch of arrays (see `engine.runs`): the leading axis is the run, then, for parameters that differ
    between states, the state.

    Attributes
    ----------
    n_columns : int
        Number of columns of a block that it reads, the first ones.
    exact : bool
        Whether `solve` is the exact maximiser, so that its steps need not be checked.
    width : int
        Number of sums of each state.
    """

    n_columns: int
    exact: bool

    @property
    def width(self) -> int: ...

    def log_density(self, theta: Theta, rows: Block) -> Table:
        """Return the log density of each row in each state."""
        ...

    def statistics(self, theta: Theta | None, rows: Block, q: Table) -> Array:
        """Return sums over rows, (runs, components, width), linear in the weighted responsibilities `q`.

        They may be moments about `theta`, which is None for a start given as responsibilities.
        """
        ...

    def solve(self, statistics: Array, theta: Theta | None, share: Array) -> Theta:
        """Maximise the expected log density, or take a share of the step to the maximum (one number per run)."""
        ...

    def n_parameters(self, n_components: int) -> int:
        """Return the number of free parameters of one mixture."""
        ...

    def describe(self, theta: Theta) -> dict[str, Array]:
        """Return estimates by name, each of shape (runs, components, ...), for display, files and standard errors."""
        ...

    def recalled(self, estimates: Mapping[str, Array]) -> Theta:
        """Return a batch of one run from the estimates of that run, (components, ...): the inverse of `describe`."""
        ...


@runtime_checkable
class FusedPass(Protocol):
    """A density with a single kernel for a pass with independent states."""

    def fused_pass(
        self, theta: Any, log_weights: Array, rows: Block, beta: float
    ) -> tuple[Array, Array, Array, Array] | None:
        """Return weighted free energies and entropies (runs,), the mass of each state (runs, components), statistics.

        None if tables are faster for the batch.
        """
        ...


@runtime_checkable
class FreeStatistics(Protocol):
    """A density whose statistics do not depend on parameters, so that sums of several steps can be extrapolated."""

    statistics_are_free: bool


@runtime_checkable
class Coordinates(Protocol):
    """A density whose parameters can be written as unconstrained numbers, for extrapolation and standard errors."""

    def vector(self, theta: Any) -> Array:
        """Return the parameters of each run as unconstrained numbers, (runs, m)."""
        ...

    def theta_of(self, vector: Array, like: Any) -> Any:
        """Return the parameters from unconstrained numbers; `like` holds fixed parts."""
        ...


@runtime_checkable
class Scored(Protocol):
    """A density or a law whose statistics tell the slope of the log-likelihood, by Fisher's identity."""

    def score(self, statistics: Array, theta: Any) -> Array:
        """Return derivatives by the unconstrained numbers of `theta`, (runs, m); `statistics` were taken at `theta`."""
        ...


@runtime_checkable
class Anchored(Protocol):
    """A density that can tell its unconstrained numbers against parameters of `theta`, one run, far from any edge."""

    def anchored(self, theta: Any) -> Any: ...


@runtime_checkable
class Edged(Protocol):
    """A density that puts at the edge what EM is bringing there, of fewer than some expected rows; None if nothing is.

    The statistics were taken at `theta`.
    """

    def at_edges(self, theta: Any, statistics: Array, rows: float) -> Any: ...


@runtime_checkable
class Bounded(Protocol):
    """A density whose expected log density is a function of the statistics, as bound policies need."""

    def expected_log_density(self, statistics: Array, theta: Any) -> Array:
        """Return ``sum_i sum_k q_ik log f(x_i; theta_k)``, one number per run."""
        ...


@runtime_checkable
class Rounded(Protocol):
    """A density whose expected log density may have larger rounding errors than its size implies."""

    def rounding(self, statistics: Array, theta: Any) -> Array:
        """Return a bound on the rounding error of an objective, one number per run."""
        ...


@runtime_checkable
class Limited(Protocol):
    """A density with limits of its estimates; estimates without limits may be any numbers."""

    limits: Mapping[str, Limits]


@runtime_checkable
class Drawn(Protocol):
    """A density from which rows can be drawn."""

    def drawn(self, theta: Any, components: NDArray[np.intp], random: np.random.Generator) -> Array:
        """Draw one row of each of these components, of the first run: (rows, columns of X)."""
        ...


@dataclass(frozen=True)
class Posterior:
    """The posterior of the states, given a law and log densities.

    Attributes
    ----------
    log_likelihood : ndarray of shape (runs,)
        Weighted sum over units (minus the free energy where beta is not 1).
    responsibilities : ndarray of shape (runs, components, rows)
        Responsibilities of each row, times its weight.
    statistics : ndarray
        The law's sums; the leading axis is the run.
    entropy : callable
        Computes the weighted entropy of the responsibilities of units divided by beta, (runs,); EM does not need it.
    units : ndarray of shape (runs, units)
        Log density of each unit.
    """

    log_likelihood: Array
    responsibilities: Table
    statistics: Array
    entropy: Callable[[], Array]
    units: Array


class Law(Protocol[Phi]):
    """The interface of a law: what is the joint distribution of the states of rows?

    Attributes
    ----------
    rows_are_units : bool
        Whether every row has its own state, so that energies are a table by row.
    numbers_states : bool
        Whether data identify the states, so that they keep their order.
    limits : mapping
        Limits of estimates by name; estimates without limits may be any numbers.
    """

    rows_are_units: bool

    @property
    def numbers_states(self) -> bool: ...

    @property
    def limits(self) -> Mapping[str, Limits]: ...

    def posterior(self, phi: Phi, log_density: Table, units: Block, beta: float) -> Posterior:
        """Return log-likelihood and responsibilities; `units` holds the columns that the density does not read."""
        ...

    def log_weights(self, phi: Phi) -> Array | None:
        """Return log weights (runs, components) if states depend on nothing else; None for other laws."""
        ...

    def log_prior(self, phi: Phi, units: Block) -> Table:
        """Return the log prior probability of each state, (runs, components, rows or 1)."""
        ...

    def first(self, q: Table, units: Block) -> tuple[Table, Array]:
        """Return weighted responsibilities and the law's sums of a start given as unweighted responsibilities."""
        ...

    def solve(self, statistics: Array, phi: Phi | None, share: Array) -> Phi:
        """Take the M-step, or a share of it."""
        ...

    def expected_log_prior(self, statistics: Array, phi: Phi) -> Array:
        """Return ``sum_i sum_k q_ik log p(k)``, one number per run."""
        ...

    def n_parameters(self, n_components: int) -> int:
        """Return the number of free parameters of one mixture."""
        ...

    def shares(self, phi: Phi, statistics: Array) -> Array:
        """Return the share of each state among all rows, (runs, components)."""
        ...

    def relabelled(self, phi: Phi, order: NDArray[np.intp]) -> Phi:
        """Return the same law with its states in another order."""
        ...

    def describe(self, phi: Phi) -> dict[str, Array]:
        """Return estimates by name, each of shape (runs, components, ...)."""
        ...

    def recalled(self, estimates: Mapping[str, Array]) -> Phi:
        """Return a batch of one run from the estimates of that run, (components, ...): the inverse of `describe`."""
        ...


_NEEDED = ["n_columns", "exact", "width", "log_density", "statistics", "solve", "n_parameters", "describe", "recalled"]


@value_class
@dataclass(frozen=True)
class Parameters(Generic[Theta, Phi]):
    """Parameters of a batch of mixtures."""

    density: Theta
    law: Phi


@dataclass(frozen=True)
class Sums:
    """Statistics of a batch of mixtures."""

    density: Array
    law: Array

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.density + other.density, self.law + other.law)


@dataclass(frozen=True)
class Mixture:
    r"""The family of a density and a law.

    .. math:: \ell(\theta, \phi) = \sum_u w_u \log \sum_z p(z_u; \phi) \prod_{i \in u} f(x_i; \theta_{z_i})
    """

    density: Density[Any]
    law: Law[Any]
    n_components: int
    beta: float = 1.0  # inverse temperature of the responsibilities

    def __post_init__(self) -> None:
        missing = [name for name in _NEEDED if not hasattr(self.density, name)]
        if missing:
            raise TypeError(
                f"{type(self.density).__name__} is no density: it lacks {', '.join(missing)} (majorant.engine.mixture."
                "Density says what each is)"
            )

    @cached_property
    def _fused(self) -> FusedPass | None:
        return self.density if isinstance(self.density, FusedPass) else None  # checking a protocol takes time

    @cached_property
    def _stretched(self) -> InStretches | None:
        return self.law if self.beta == 1.0 and isinstance(self.law, InStretches) else None

    def pass_over(self, theta: Parameters[Any, Any], block: Block) -> Seen:
        """Return the log-likelihood and statistics of a block, for every run of a batch."""
        return self._pass(theta, block)[0]

    def _pass(self, theta: Parameters[Any, Any], block: Block) -> tuple[Seen, Callable[[], Array]]:
        rows, units = self.parts(block)
        log_weights = self.law.log_weights(theta.law)
        if log_weights is not None and self._fused is not None:
            fused = self._fused.fused_pass(theta.density, log_weights, rows, self.beta)
            if fused is not None:
                free, entropy, mass, statistics = fused
                return Seen(free, Sums(statistics, mass)), lambda: entropy
        if self._stretched is not None:
            long = pass_in_stretches(self.density, self._stretched, theta.density, theta.law, rows, units)
            if long is not None:
                value, sums, own, spread = long
                return Seen(-value, Sums(sums, own)), spread
        found = self.law.posterior(theta.law, self.density.log_density(theta.density, rows), units, self.beta)
        statistics = self.density.statistics(theta.density, rows, found.responsibilities)
        return Seen(-found.log_likelihood, Sums(statistics, found.statistics)), found.entropy

    def likelihood(self, theta: Parameters[Any, Any], block: Block) -> tuple[float, float]:
        """Return minus the log-likelihood of a block for one run, and the entropy of its responsibilities."""
        seen, entropy = self._pass(theta, block)
        return float(seen.objective[0]), float(entropy()[0])

    def parts(self, block: Block) -> tuple[Block, Block]:
        """Return the block with the density's columns, and with the law's."""
        n = self.density.n_columns
        return block.seen(block.columns[:n]), block.seen(block.columns[n:] or block.columns[:1])

    def responsibilities(self, theta: Parameters[Any, Any], block: Block) -> tuple[Table, Table]:
        """Return unweighted responsibilities and log densities of the rows of a block."""
        rows, units = self.parts(Block(block.first, block.columns))
        log_density = self.density.log_density(theta.density, rows)
        return self.law.posterior(theta.law, log_density, units, self.beta).responsibilities, log_density

    def posterior(self, theta: Parameters[Any, Any], block: Block) -> Posterior:
        """Return the law's posterior given the densities of a block."""
        rows, units = self.parts(block)
        return self.law.posterior(theta.law, self.density.log_density(theta.density, rows), units, self.beta)

    def started(self, q: Table, data: Chunks, *, keeps_order: bool = False) -> Parameters[Any, Any]:
        """Return the parameters from given responsibilities, (runs, components, rows), by one M-step.

        Unless it `keeps_order`, components take the numbers of the known states with which they share most rows.
        """
        if not keeps_order and hasattr(self.law, "numbered"):
            q = self.law.numbered(q, data, lambda block: self.parts(block)[1])

        def visit(block: Block) -> Sums:
            rows, units = self.parts(block)
            weighted, own = self.law.first(q[:, :, block.at], units)
            return Sums(self.density.statistics(None, rows, weighted), own)

        return self.solved(data.map_sum(visit), None, np.ones(len(q)))

    def solved(self, sums: Sums, theta: Parameters[Any, Any] | None, share: Array) -> Parameters[Any, Any]:
        """Take the M-step of both parts."""
        density, law = (None, None) if theta is None else (theta.density, theta.law)
        return Parameters(self.density.solve(sums.density, density, share), self.law.solve(sums.law, law, share))

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return self.density.n_parameters(self.n_components) + self.law.n_parameters(self.n_components)


@dataclass
class OnData:
    """A mixture on some data, as a problem of the descent."""

    mixture: Mixture
    data: Chunks

    @property
    def total_weight(self) -> float:
        return self.data.total_weight

    @property
    def is_guarded(self) -> bool:
        return not (self.mixture.density.exact and getattr(self.mixture.law, "statistics_are_free", False))

    def seen(self, theta: Parameters[Any, Any]) -> Seen:
        mixture = self.mixture  # functions sent to workers must not hold the data
        seen = self.data.map_sum(lambda block: mixture.pass_over(theta, block))
        if hasattr(mixture.law, "penalty"):
            seen = replace(seen, objective=seen.objective + mixture.law.penalty(theta.law))
        return seen

    def moved(self, theta: Parameters[Any, Any], seen: Seen, share: Array) -> Parameters[Any, Any]:
        return self.mixture.solved(seen.statistics, theta, share)

    def extrapolated(self, path: tuple[Any, Any, Any], seen: tuple[Seen, Seen, Seen]) -> Parameters[Any, Any] | None:
        density, law = self.mixture.density, self.mixture.law
        one = np.ones(len(seen[0].objective))
        if getattr(density, "statistics_are_free", False) and getattr(law, "statistics_are_free", False):
            sums = mapped(further, *(s.statistics for s in seen))
            return self.mixture.solved(sums, path[2], one)
        if not isinstance(density, Coordinates):
            return None
        there = density.theta_of(further(*(density.vector(p.density) for p in path), signed=True), path[2].density)
        if getattr(law, "goes_on_in_sums", False):
            return Parameters(there, law.solve(further(*(s.statistics.law for s in seen)), path[2].law, one))
        if not isinstance(law, Coordinates):
            return None
        own = further(*(law.vector(p.law) for p in path), signed=True)
        return Parameters(there, law.theta_of(own, path[2].law))


class SingleRun:
    """A mixture as a family of the bound loop: one run, energies by row.

    Raises
    ------
    TypeError
        If the law has no energies by row, or the value of a bound is not a function of the statistics.
    """

    def __init__(self, mixture: Mixture) -> None:
        density, law = mixture.density, mixture.law
        if not law.rows_are_units:
            raise TypeError(
                f"bound policies need a state for every row; with {type(law).__name__.lower()} states only the "
                "tightest bound (bounds=None) is available"
            )
        if not isinstance(density, Bounded):
            raise TypeError(
                f"bound policies and temperatures need the expected log density; {type(density).__name__} has no "
                "expected_log_density: leave bounds=None and beta=1"
            )
        self.mixture, self.bounded = mixture, density
        self.beta, self.n_states, self.slack = mixture.beta, mixture.n_components, 0.0

    def energies(self, theta: Parameters[Any, Any], block: Block) -> NDArray[Any]:
        rows, units = self.mixture.parts(block)
        joint = self.mixture.density.log_density(theta.density, rows) + self.mixture.law.log_prior(theta.law, units)
        return np.ascontiguousarray(-joint[0].T)

    def statistics(self, block: Block, q: Latent, theta: Parameters[Any, Any] | None) -> Array:
        table = np.ascontiguousarray(as_soft(q, self.n_states).T)[None]
        rows, units = self.mixture.parts(block)
        weighted, own = self.mixture.law.first(table, units)
        density = self.mixture.density.statistics(None if theta is None else theta.density, rows, weighted)
        return np.concatenate([density.ravel(), own.ravel()])

    def tight_pass(self, theta: Parameters[Any, Any], block: Block) -> tuple[float, Bound]:
        seen, entropy = self.mixture._pass(theta, block)
        sums: Sums = seen.statistics
        both = np.concatenate([sums.density.ravel(), sums.law.ravel()])
        return float(seen.objective[0]), Bound(both, float(entropy()[0]), 0.0)

    def solve(self, s: Array, theta: Parameters[Any, Any] | None, data: Chunks) -> tuple[Parameters[Any, Any], float]:
        shape = (1, self.n_states, self.mixture.density.width)
        size = self.n_states * shape[2]
        sums = Sums(s[:size].reshape(shape), s[size:][None])
        new = self.mixture.solved(sums, theta, np.ones(1))
        value = self.bounded.expected_log_density(sums.density, new.density)
        value = value + self.mixture.law.expected_log_prior(sums.law, new.law)
        if isinstance(self.bounded, Rounded):
            self.slack = float(self.bounded.rounding(sums.density, new.density)[0])
        return new, -float(value[0])

    def penalty(self, theta: Parameters[Any, Any]) -> float:
        return 0.0
