"""The certificate of a fit, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GlobalCertificate:
    """Whether a fit is the best of all harmoniums with its penalty, of any number of components.

    Attributes
    ----------
    eigenvalue : float or None
        The smallest eigenvalue of the matrix Q; None where there is no certificate.
    tolerance : float or None
        What it may be below zero because the fit stopped before it was exactly stationary.
    rank : int
        Components that the fit uses.
    n_components : int
        Components that it might have used.
    method : str
        What was minimised.
    """

    eigenvalue: float | None
    tolerance: float | None
    rank: int
    n_components: int
    method: str = "pseudo-likelihood"

    @property
    def is_global(self) -> bool:
        """Whether the fit is proved to be a global optimum."""
        return self.eigenvalue is not None and self.tolerance is not None and self.eigenvalue >= -self.tolerance

    @property
    def binds(self) -> bool:
        """Whether all components are used and one more would be, too."""
        return self.eigenvalue is not None and not self.is_global and self.rank >= self.n_components

    @property
    def sentence(self) -> str:
        """The verdict, and what to change."""
        if self.method == "cd":
            return (
                "No certificate: contrastive divergence is not convex, and other starts may end elsewhere. "
                "Give n_init to see whether they do, or method='pseudo-likelihood', which has a certificate."
            )
        if self.eigenvalue is None:
            return "No certificate: rows that lack a view make the problem one that is not convex."
        number = f"smallest eigenvalue {self.eigenvalue:.2g}, tolerance {self.tolerance:.1g}"
        if self.is_global:
            return f"A global optimum: with this penalty no harmonium of any number of components is better ({number})."
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
