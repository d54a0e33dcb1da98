r"""Energies of the values of a latent variable: free energy, posterior, and the state of lowest energy.

Functions take an array of energies, with one entry for each state (+inf where a state is absent) along axes that the
caller names; the other axes are samples. At inverse temperature
:math:`\beta` the energies define the Gibbs distribution

.. math:: P(y, z) = \frac{e^{-\beta E(y, z)}}{\sum_{y', z'} e^{-\beta E(y', z')}}.

**Marginalising.** A label `y` is as probable as all its latent values `z` together. The denominator depends on neither,

.. math:: P(y) \propto \sum_z e^{-\beta E(y, z)} = e^{-\beta F(y)}, \qquad
          F(y) = -\frac{1}{\beta} \log \sum_z e^{-\beta E(y, z)},

so the *free energy* :math:`F` acts as an energy without the latent variable: the most probable label is the one of
lowest free energy.

**Minimising.** :math:`F` lies below the smallest energy, by at most :math:`\log(n)/\beta` for `n` states, since the sum
is at least its largest term and at most `n` times that. So at :math:`\beta\to\infty`, zero temperature, it *is* the
smallest energy, and the most probable label is that of the best pair :math:`\min_{y, z} E(y, z)`.

**Bounding.** For any distribution `q` over the states Jensen's inequality gives

.. math:: F \;\le\; \sum_z q(z) E(z) - H(q)/\beta, \qquad H(q) = -\sum_z q(z) \log q(z),

with equality where `q` is the posterior, because the difference is :math:`KL(q \,\|\, P)/\beta`. Minimising the right
side over `q` and over the parameters of `E` in turn is the EM algorithm.

**Differentiating.** :math:`\partial F/\partial E(z) = P(z)`: a gradient of a free energy is the posterior mean of the
gradients of the energies ("responsibilities times component gradients").

Computations are relative to the smallest energy, so no energy is too large. If all states of a sample are absent, its
free energy is +inf, its posterior is zero everywhere, and its best state is -1.

Examples
--------
Two labels, three latent values:

>>> import numpy as np
>>> import majorant as mj
>>> E = np.array([[1.0, 1.0, 1.0], [0.5, 9.0, 9.0]])
>>> mj.energy.map_inference(E, label_axis=0, latent_axis=1)
Minimum(energy=0.5, label=1, latent=0)
>>> mj.energy.marginal_posterior(E, label_axis=0, latent_axis=1, beta=1.0).round(3)
array([0.645, 0.355])

The single best pair has label 1, but at this temperature the three latent values of label 0 together outweigh it.

References
----------
.. [1] Y. LeCun, "Machine learning and pattern recognition: latent variables, mixture models, EM", lecture notes.
.. [2] R. M. Neal, G. E. Hinton, "A view of the EM algorithm that justifies incremental, sparse, and other variants",
   Learning in Graphical Models, 1998.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from majorant import _kernels
from majorant._validation import check_integer, check_real

__all__ = ["Minimum", "bound_value", "free_energy", "map_inference", "marginal_posterior", "posterior"]

Axes = int | tuple[int, ...]


class Minimum(NamedTuple):
    """The state of lowest energy of each sample.

    Attributes
    ----------
    energy : ndarray
        Lowest energy; +inf where every state is absent.
    label, latent : ndarray of int, or tuple of them
        Position along the label and the latent axis (one array per axis if there are several); -1 where every state is
        absent.
    """

    energy: Any
    label: Any
    latent: Any


def free_energy(energies: ArrayLike, axis: Axes = -1, beta: float = 1.0) -> Any:
    r"""Return the free energy of the states along some axes.

    .. math:: F = -\frac{1}{\beta} \log \sum_z e^{-\beta E(z)}, \qquad F = \min_z E(z) \text{ at } \beta = \infty

    Its derivative with respect to an energy is that state's `posterior`. It never falls as beta rises, and
    :math:`\min E - \log(n)/\beta \le F \le \min E` for `n` states.

    Parameters
    ----------
    energies : array-like
        +inf where a state is absent. float32 stays float32, all else becomes float64.
    axis : int or tuple of int, default=-1
        The axes of the states.
    beta : float, default=1.0
        Inverse temperature, in (0, inf].

    Returns
    -------
    ndarray or scalar
        The shape of `energies` without `axis`; +inf where every state is absent.

    Raises
    ------
    ValueError
        If an energy is NaN or -inf, there are no states, or beta is not positive or so small that the result overflows.

    Examples
    --------
    >>> from majorant import energy
    >>> float(energy.free_energy([3.0, 3.0], beta=2.0).round(4))  # 3 - log(2)/2
    2.6534
    >>> float(energy.free_energy([3.0, 5.0], beta=float("inf")))
    3.0
    """
    table, samples, _, _ = _states_last(energies, axis)
    return _gibbs_checked(table, _checked(beta))[0].reshape(samples)[()]


def posterior(energies: ArrayLike, axis: Axes = -1, beta: float = 1.0) -> Any:
    r"""Return the Gibbs distribution over the states along some axes.

    .. math:: P(z) = e^{-\beta (E(z) - F)}

    and at :math:`\beta = \infty` its limit: equal probabilities for the states of lowest energy.

    Parameters
    ----------
    energies : array-like
        +inf where a state is absent.
    axis : int or tuple of int, default=-1
        The axes of the states.
    beta : float, default=1.0
        Inverse temperature, in (0, inf].

    Returns
    -------
    ndarray
        The shape of `energies`. Sums to one over `axis`, or to zero where every state is absent.

    Raises
    ------
    ValueError
        As `free_energy`.

    Examples
    --------
    >>> from majorant import energy
    >>> energy.posterior([[0.0, 1.0], [2.0, 2.0]], beta=1.0).round(3)
    array([[0.731, 0.269],
           [0.5  , 0.5  ]])
    >>> energy.posterior([0.0, 1.0, 0.0], beta=float("inf"))
    array([0.5, 0. , 0.5])
    """
    table, samples, states, axes = _states_last(energies, axis)
    shares = _gibbs_checked(table, _checked(beta))[1].reshape(samples + states)
    return np.moveaxis(shares, range(-len(axes), 0), axes)


def marginal_posterior(energies: ArrayLike, label_axis: Axes, latent_axis: Axes, beta: float = 1.0) -> Any:
    r"""Return the distribution over labels, with the latent variable summed out.

    .. math:: P(y) = \sum_z P(y, z) = \frac{e^{-\beta F(y)}}{\sum_{y'} e^{-\beta F(y')}}

    At :math:`\beta = \infty` its limit: each label's share of the pairs of lowest energy.

    Parameters
    ----------
    energies : array-like
        +inf where a pair of label and latent value is absent.
    label_axis, latent_axis : int or tuple of int
        The axes of the labels, and of the latent values.
    beta : float, default=1.0
        Inverse temperature, in (0, inf].

    Returns
    -------
    ndarray
        The shape of `energies` without `latent_axis`. Sums to one over the labels, or to zero where all states are
        absent.

    Raises
    ------
    ValueError
        As `free_energy`, or if an axis is both of labels and of latent values.

    Examples
    --------
    >>> from majorant import energy
    >>> energy.marginal_posterior([[0.0, 0.0], [0.0, float("inf")]], label_axis=0, latent_axis=1).round(3)
    array([0.667, 0.333])
    """
    labels, latents = _two_kinds(energies, label_axis, latent_axis)
    return np.minimum(posterior(energies, labels + latents, beta).sum(axis=latents), 1.0)  # not above by rounding


def map_inference(energies: ArrayLike, label_axis: Axes, latent_axis: Axes) -> Minimum:
    r"""Find the label and the latent value of jointly lowest energy.

    .. math:: E(y^*, z^*) = \min_{y, z} E(y, z)

    :math:`y^*` is the most probable label at zero temperature; at another one, minimise `free_energy` over labels.

    Parameters
    ----------
    energies : array-like
        +inf where a pair of label and latent value is absent.
    label_axis, latent_axis : int or tuple of int
        The axes of the labels, and of the latent values.

    Returns
    -------
    Minimum
        ``energy``, ``label``, ``latent``. Of equal pairs the first is returned, by label, then by latent value.

    Raises
    ------
    ValueError
        As `marginal_posterior`.

    Examples
    --------
    >>> from majorant import energy
    >>> energy.map_inference([[4.0, 2.0], [3.0, 5.0]], label_axis=0, latent_axis=1)
    Minimum(energy=2.0, label=0, latent=1)
    """
    labels, latents = _two_kinds(energies, label_axis, latent_axis)
    table, samples, states, _ = _states_last(energies, labels + latents)
    least, at = row_minimum(table)
    found = [np.where(np.isinf(least), -1, index).reshape(samples)[()] for index in np.unravel_index(at, states)]
    n = len(labels)
    label = tuple(found[:n]) if isinstance(label_axis, tuple) else found[0]
    latent = tuple(found[n:]) if isinstance(latent_axis, tuple) else found[n]
    return Minimum(*(_plain(part) for part in (least.reshape(samples)[()], label, latent)))


def bound_value(energies: ArrayLike, q: ArrayLike, axis: Axes = -1, beta: float = 1.0) -> Any:
    r"""Compute the upper bound on the free energy that a distribution over the states gives.

    .. math:: b(q) = \sum_z q(z) E(z) - \frac{H(q)}{\beta} = F + \frac{KL(q \,\|\, P)}{\beta} \ge F

    Parameters
    ----------
    energies : array-like
        +inf where a state is absent.
    q : array-like
        Distribution, broadcast against `energies`; nonnegative, with sum one over `axis`.
    axis : int or tuple of int, default=-1
        The axes of the states.
    beta : float, default=1.0
        Inverse temperature, in (0, inf].

    Returns
    -------
    ndarray or scalar
        The shape of `energies` without `axis`; `free_energy` where `q` is the `posterior`.

    Examples
    --------
    >>> from majorant import energy
    >>> E = [1.0, 2.0, 4.0]
    >>> round(float(energy.bound_value(E, [0.6, 0.3, 0.1]) - energy.free_energy(E)), 4)
    0.0511
    >>> bool(energy.bound_value(E, energy.posterior(E)) - energy.free_energy(E) < 1e-12)
    True
    """
    beta = _checked(beta)
    table, shares = np.broadcast_arrays(_numbers(energies), np.asarray(q, dtype=np.float64))
    return expected(shares, table, axis) - entropy(shares, axis) / beta


def gibbs(
    table: NDArray[Any],  # (rows, n_states): floats, without NaN and -inf
    beta: float,  # in (0, inf]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute free energy and posterior of every row of a table that has been checked."""
    least = row_minimum(table)[0]
    base = np.where(np.isinf(least), 0, least)[:, None]
    if np.isinf(beta):
        shares = ((table == base) & np.isfinite(table)).astype(table.dtype)
    else:
        with np.errstate(over="ignore"):  # a state so far above the lowest has no share
            shares = np.exp(-float(beta) * (table - base))
    total = shares.sum(axis=1)
    total[total == 0] = 1  # every state is absent
    shares /= total[:, None]
    return (least if np.isinf(beta) else least - np.log(total) / float(beta)), shares


def row_minimum(table: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the smallest entry of every row of a table and its first position."""
    table = np.ascontiguousarray(table)
    least = np.empty(len(table), dtype=table.dtype)
    argument = np.empty(len(table), dtype=np.int32)
    _kernels.row_minimum(table, least, argument)
    return least, argument


def entropy(q: NDArray[Any], axis: Axes = -1) -> Any:
    """Return the entropy of the distributions along some axes (natural logarithm)."""
    return -np.sum(q * np.log(np.where(q > 0, q, 1.0)), axis=axis, dtype=np.float64)


def expected(q: NDArray[Any], table: NDArray[Any], axis: Axes = -1) -> Any:
    """Return the expectation of a table under distributions along some axes; zero times infinity counts as zero."""
    return np.sum(q * np.where(q > 0, table, 0.0), axis=axis)


def _gibbs_checked(table: NDArray[Any], beta: float) -> tuple[NDArray[Any], NDArray[Any]]:
    with np.errstate(over="ignore"):
        free, shares = gibbs(table, beta)
    if np.isneginf(free).any():
        raise ValueError(f"beta={beta:g} is so small that the free energy is below the least number of {free.dtype}")
    return free, shares


def _checked(beta: float) -> float:
    beta = check_real("beta", beta, low=0.0)
    if beta == 0:
        raise ValueError("beta must be positive; got 0 (at an infinite temperature there is no free energy)")
    return beta


def _numbers(energies: ArrayLike) -> NDArray[Any]:
    array = np.asarray(energies)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"energies must be numbers; got an array of {array.dtype}")
    array = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    for is_wrong, what in ((np.isnan, "NaN"), (np.isneginf, "-inf")):
        if is_wrong(array).any():
            at = tuple(int(i) for i in np.argwhere(is_wrong(array))[0])
            raise ValueError(f"energies must be numbers, or +inf for absent states; entry {at} is {what}")
    return array


def _axes(name: str, axis: Axes, ndim: int) -> tuple[int, ...]:
    """Return the axes as numbers counted from 0."""
    found = tuple(check_integer(name, a) for a in (axis if isinstance(axis, tuple) else (axis,)))
    if not all(-ndim <= a < ndim for a in found):
        raise ValueError(f"{name}={axis} is not an axis of energies, which have {ndim}")
    found = tuple(a % ndim for a in found)
    if len(set(found)) < max(len(found), 1):
        raise ValueError(f"{name} must name one axis or several different ones; got {axis}")
    return found


def _states_last(
    energies: ArrayLike, axis: Axes
) -> tuple[NDArray[Any], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Flatten to one row per sample and one column per state; also return both shapes and the states' axes."""
    array = _numbers(energies)
    axes = _axes("axis", axis, array.ndim)
    moved = np.moveaxis(array, axes, range(-len(axes), 0))
    samples, states = moved.shape[: -len(axes)], moved.shape[-len(axes) :]
    if 0 in states:
        raise ValueError(f"there are no states: energies have shape {array.shape}, and their axes are {axis}")
    return moved.reshape(math.prod(samples), math.prod(states)), samples, states, axes


def _two_kinds(energies: ArrayLike, label_axis: Axes, latent_axis: Axes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    ndim = np.ndim(energies)
    labels = _axes("label_axis", label_axis, ndim)
    latents = _axes("latent_axis", latent_axis, ndim)
    if set(labels) & set(latents):
        raise ValueError(f"an axis holds labels or latent values, not both; got {label_axis} and {latent_axis}")
    return labels, latents


def _plain(part: Any) -> Any:
    """Convert an array without axes to a Python number."""
    if isinstance(part, tuple):
        return tuple(_plain(p) for p in part)
    return part.item() if np.ndim(part) == 0 else part
