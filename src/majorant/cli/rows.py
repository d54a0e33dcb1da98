"""Rows of a table as a model takes them: of numbers, text or views, with the covariates of the weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from majorant._numbers import article
from majorant.cli.errors import CommandError
from majorant.cli.formulas import complete_rows
from majorant.cli.matrix import Columns, Matrix, build_matrix, check_there, item_matrix
from majorant.cli.settings import allows_missing
from majorant.cli.tables import SourceTable
from majorant.registry import card_of


def matrix_for(
    estimator: Any,
    table: SourceTable,
    columns: Columns,
    drop_missing: bool,
    *,
    leaves_out: bool,
    has_labels: bool = False,
    is_new: bool = False,
) -> Matrix:
    """Return the rows of a table as a model takes them, without those that lack a covariate.

    New rows that lack one stay, where the model has a rule for them, ``missing``.

    Parameters
    ----------
    drop_missing : bool
        Whether rows with an empty cell are left out where the model could take them.
    leaves_out : bool
        Whether they are where it cannot; otherwise they are an error.
    has_labels : bool
        Whether the target names classes, so that it may be text.
    is_new : bool
        Whether the model is fitted already, so that no column can be left out.
    """
    views = getattr(estimator, "views", None)

    def build(part: SourceTable) -> Matrix:
        if views is not None:
            from majorant.cli.views import view_matrix

            return view_matrix(part, columns, views, drop_missing, has_labels, is_new)
        if card_of(estimator).takes_text:
            return item_matrix(part, columns, drop_missing, is_new)
        keeps_missing = allows_missing(estimator) and not drop_missing
        return build_matrix(part, columns, keeps_missing, leaves_out, has_labels, is_new)

    if not columns.covariates:
        return build(table)
    if is_new and hasattr(estimator, "missing"):
        for name in columns.covariates:
            check_there(table, name)
        matrix = build(table)
        return replace(matrix, covariates=table.frame.select(columns.covariates)[matrix.rows - 1])
    used = complete_rows(table, columns.covariates, drop_missing=True)
    matrix = build(used.table)
    return replace(
        matrix,
        rows=used.rows[matrix.rows - 1],
        n_left_out=matrix.n_left_out + used.n_left_out,
        n_without_covariate=used.n_left_out,
        covariates=used.frame.select(columns.covariates)[matrix.rows - 1],
    )


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
