"""The convex bound of a structural SVM, solved by any of three solvers that share one contract (`problem`)."""

from majorant.solvers.structural_svm.cutting_plane import cutting_plane
from majorant.solvers.structural_svm.descent import DualPlanes, PlaneCache, dual_coordinate_descent
from majorant.solvers.structural_svm.frank_wolfe import block_frank_wolfe
from majorant.solvers.structural_svm.problem import (
    BoundSolution,
    BoundSolver,
    Cut,
    Plane,
    StructuralProblem,
    exact_pass,
)

SOLVERS: dict[str, BoundSolver] = {
    "dcd": dual_coordinate_descent,
    "cutting-plane": cutting_plane,
    "bcfw": block_frank_wolfe,
}
"""By the names that estimators give them."""

__all__ = [
    "SOLVERS",
    "BoundSolution",
    "BoundSolver",
    "Cut",
    "DualPlanes",
    "Plane",
    "PlaneCache",
    "StructuralProblem",
    "block_frank_wolfe",
    "cutting_plane",
    "dual_coordinate_descent",
    "exact_pass",
]
