"""Solvers of the convex bound of a structural SVM: a `BoundRequest` in, a `BoundSolution` out."""

from majorant.solvers.structural_svm.cutting_plane import cutting_plane
from majorant.solvers.structural_svm.descent import dual_coordinate_descent
from majorant.solvers.structural_svm.frank_wolfe import block_frank_wolfe
from majorant.solvers.structural_svm.problem import BoundRequest, BoundSolution, BoundSolver, Plane, exact_pass

SOLVERS: dict[str, BoundSolver] = {
    "dcd": dual_coordinate_descent,
    "cutting-plane": cutting_plane,
    "bcfw": block_frank_wolfe,
}
"""Solvers by the names that estimators use."""

__all__ = ["SOLVERS", "BoundRequest", "BoundSolution", "BoundSolver", "Plane", "exact_pass"]
