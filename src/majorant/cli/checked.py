"""What is checked of a request before the libraries that fit models are loaded, so that mistakes are told at once."""

from __future__ import annotations

from majorant.cli.errors import CommandError
from majorant.cli.matrix import check_there
from majorant.cli.request import FitRequest
from majorant.cli.runs import FILES, TABLES, check_free, table_files
from majorant.cli.settings import check_model
from majorant.cli.tables import SourceTable, is_same_file, read_table


def checked(request: FitRequest) -> SourceTable:
    """Return the table of a request that names a known model, a free folder and columns that are there.

    Raises
    ------
    CommandError
    """
    check_model(request.model)
    for name in (*FILES, TABLES, *table_files()):
        if is_same_file(request.out / name, request.table):
            raise CommandError(
                f"{request.table} would be replaced by the run's own {name}.", "Choose another --out, or rename it."
            )
    check_free(request.out, request.force)
    table = read_table(request.table, request.reading)
    for names in request.named_columns.values():
        for name in names:
            check_there(table, name)
    return table
