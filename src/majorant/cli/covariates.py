"""Rows of a table with the covariates that the weights of the components depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from majorant._numbers import article
from majorant.cli.errors import CommandError
from majorant.cli.formulas import complete_rows
from majorant.cli.matrix import Columns, Matrix, check_there
from majorant.cli.tables import SourceTable


def with_covariates(
    table: SourceTable, columns: Columns, build: Callable[[SourceTable], Matrix], estimator: Any
) -> tuple[Matrix, list[str]]:
    """Return the matrix of rows that have all covariates, and a sentence on those that do not and are left out.

    A model with a rule of its own, ``missing``, is given all rows.

    Parameters
    ----------
    build : callable
        Makes the matrix of a table without covariates.
    """
    if not columns.covariates:
        return build(table), []
    if hasattr(estimator, "missing"):
        for name in columns.covariates:
            check_there(table, name)
        matrix = build(table)
        return replace(matrix, covariates=table.frame.select(columns.covariates)[matrix.rows - 1]), []
    used = complete_rows(table, columns.covariates, drop_missing=True, option=None)
    matrix = build(used.table)
    matrix = replace(
        matrix,
        rows=used.rows[matrix.rows - 1],
        n_left_out=matrix.n_left_out + used.n_left_out,
        covariates=used.frame.select(columns.covariates)[matrix.rows - 1],
    )
    said = f"Rows that lack a covariate are left out: {used.n_left_out}."
    return matrix, [said] if used.n_left_out else []


def check_covariates(columns: Columns) -> None:
    """Raise CommandError for a covariate that is named twice, or has another role, as outcomes cannot have either."""
    covariates = (*columns.covariates, *columns.later.covariates)
    for name, role in (dict.fromkeys(covariates, "covariate") | columns.beside).items():
        if covariates.count(name) > 1:
            raise CommandError(f'"{name}" is named twice.', "Name every covariate once.")
        if name in (*columns.features, columns.weights):
            raise CommandError(
                f'"{name}" cannot be {article(role)} {role} and a feature or the weights at once.',
                "Name it in one option.",
            )
