"""Starts of fits: seeds, moments, relaxations, and the record of many starts."""

from majorant.starts.ball import ball_relaxation
from majorant.starts.quadratic import QuadraticApproximation, principal_axes
from majorant.starts.simplex_program import SimplexProgramResult, low_rank_simplex_program, random_assignments

__all__ = [
    "QuadraticApproximation",
    "SimplexProgramResult",
    "ball_relaxation",
    "low_rank_simplex_program",
    "principal_axes",
    "random_assignments",
]
