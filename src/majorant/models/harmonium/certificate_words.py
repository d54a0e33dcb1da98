"""The certificate of a fit, in words."""

from __future__ import annotations

from dataclasses import dataclass

STATIONARY = 0.01
"""Largest gradient, as a share of the penalty's own, of a fit that has ended: beyond it nothing is certified."""
TOLERANCE = 1e-3
"""What the smallest eigenvalue may be below zero at a stationary point."""

UNLESS_MISSED = "unless Lanczos' method, from a random start, missed the smallest eigenvalue"
"""What the verdict on more variables than all eigenvalues are computed of is up to."""


def tolerance_of(stationarity: float) -> float:
    """What the smallest eigenvalue may be below zero: what a gradient that is left moves it by is no direction down."""
    return TOLERANCE + 2 * stationarity


@dataclass(frozen=True)
class GlobalCertificate:
    """Whether a fit is the best of all harmoniums with its penalty, of any number of components.

    Attributes
    ----------
    eigenvalue : float or None
        The smallest eigenvalue of the matrix Q; None where there is no certificate.
    stationarity : float or None
        Norm of the gradient that is left, as a share of that of the penalty: zero at a stationary point.
    rank : int
        Components that the fit uses.
    n_components : int
        Components that it might have used.
    method : str
        What was minimised.
    by_lanczos : bool
        Whether the eigenvalue is one of more than 2000 variables: found by Lanczos' method from a random start, and the
        smallest one up to the method's missing that.
    """

    eigenvalue: float | None
    stationarity: float | None
    rank: int
    n_components: int
    method: str = "pseudo-likelihood"
    by_lanczos: bool = False

    @property
    def tolerance(self) -> float | None:
        """What the eigenvalue may be below zero because the fit stopped before it was exactly stationary."""
        return None if self.stationarity is None else tolerance_of(self.stationarity)

    @property
    def has_ended(self) -> bool:
        """Whether the fit went on until hardly any gradient was left: at most 0.01 of the penalty's."""
        return self.stationarity is not None and self.stationarity <= STATIONARY

    @property
    def is_global(self) -> bool:
        """Whether the fit is certified to be a global optimum; with `by_lanczos` unless the eigenvalue was missed."""
        return self.has_ended and not self._leads_down

    @property
    def binds(self) -> bool:
        """Whether all components are used and one more would be, too."""
        return self.has_ended and self._leads_down and self.rank >= self.n_components

    @property
    def _leads_down(self) -> bool:
        return self.eigenvalue is not None and self.tolerance is not None and self.eigenvalue < -self.tolerance

    @property
    def sentence(self) -> str:
        """The verdict, and what to change."""
        if self.method == "cd":
            return (
                "No certificate: contrastive divergence is not convex, and other starts may end elsewhere. "
                "Give n_init to see whether they do, or method='pseudo-likelihood', which has a certificate."
            )
        if self.eigenvalue is None or self.stationarity is None:
            return "No certificate: rows that lack a Gaussian view make the problem one that is not convex."
        if not self.has_ended:
            return (
                f"Not shown to be a global optimum: the fit had not ended when it stopped (a gradient of "
                f"{self.stationarity:.2g} of the penalty's was left, and at most {STATIONARY} may be). "
                "Give a larger max_iter and a smaller tol."
            )
        number = f"smallest eigenvalue {self.eigenvalue:.2g}, tolerance {self.tolerance:.1g}"
        if self.is_global:
            unless = f", {UNLESS_MISSED}" if self.by_lanczos else ""
            return (
                f"A global optimum{unless}: with this penalty no harmonium of any number of components is better "
                f"({number})."
            )
        if self.binds:
            return (
                f"n_components={self.n_components} binds: one component more would be used ({number}). "
                "Give grow=True or a larger n_components, or a larger l2."
            )
        return (
            f"Not shown to be a global optimum: {self.rank} of {self.n_components} components are used, but a "
            f"direction leads down ({number}). Give grow=True, a smaller tol or a larger max_iter."
        )

    def __str__(self) -> str:
        return self.sentence
