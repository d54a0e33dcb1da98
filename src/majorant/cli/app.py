"""The commands and their arguments; each calls the module that does the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from inspect import Parameter, signature
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from majorant.cli import STOPPED, load_scikit_learn
from majorant.cli.completion import model_names, parameter_settings
from majorant.cli.errors import CommandError, did_you_mean

app = typer.Typer(
    name="majorant",
    help="Fit latent-variable models whose answer does not depend on a lucky start.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)

Command = Callable[..., int | None]
Table = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="CSV, TSV, Excel, Parquet, Arrow or .npz file; - for standard input."),
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that majorant fit wrote.")]
Out = Annotated[Path, typer.Option(metavar="FILE", help="File to write: .csv, .tsv, .xlsx or .parquet.")]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave rows with missing values out.")]
Keep = Annotated[
    str | None, typer.Option(metavar="A,B,C", help='Columns of the table to write beside the results; "*" for all.')
]
Force = Annotated[bool, typer.Option("--force", help="Replace what an earlier run wrote.")]


def _option(of: Any, metavar: str | None, text: str, *flags: str, default: Any = None, **more: Any) -> tuple[Any, Any]:
    """Return an option of some type, as a parameter is annotated with it, and its default."""
    return Annotated[of, typer.Option(*flags, metavar=metavar, help=text, **more)], default


_text = partial(_option, str | None)
_list = partial(_option, list[str] | None)
_flag = partial(_option, bool, None, default=False)
READING = {
    "sep": _text("SIGN", "What separates the columns of a text."),
    "decimal": _text("SIGN", 'Decimal sign: "." (the default) or ",".'),
    "thousands": _text("SIGN", "What groups the digits of numbers by three."),
    "encoding": _text("NAME", "Of a text: utf-8 (the default), cp1252, ..."),
    "skip_rows": _option(int | None, "N", "Lines above the column names.", min=0),
    "na": _text("A,B", "What stands where a cell is missing: -99,999."),
    "sheet": _text("NAME", "Sheet of a workbook, by name or number."),
}
"""How a table is read: options of every command that reads one, and fields of `Reading`."""
FIT = {
    "target": _text("Y", "Column to predict, for models that do."),
    "features": _text("A,B,C", "Columns to use; all numeric ones by default."),
    "formula": _text("F", 'Instead of the two: "y ~ x + I(x**2) | id", for models that take it.'),
    "family": _text("NAME", "Distribution of the target, for models that have several."),
    "groups": _text("COLUMN", "Rows that belong together, for models that take it."),
    "gating": _text('"A + B"', "What the weights depend on, for models that take it."),
    "offset": _text("COLUMN", 'Known part of the predictor, such as "log(T)"; for models that take it.'),
    "trials": _text("COLUMN", "Number of trials of each row, for models that take it."),
    "covariates": _text("A,B,C", "Columns that the shares of the parts depend on; text has a column for each level."),
    "population": _text("COLUMN", "Population of each row, for models that compare several of them."),
    "equal_items": _text("ITEMS", "Items that are measured alike in all populations: all, none, or A,B."),
    "invariance_tests": _flag("Test whether items are measured alike in all populations.", "--invariance-tests"),
    "component_labels": _text(
        "COLUMN", "Class of each row where it is known, from 1 or in words; an empty cell where not."
    ),
    "outcomes": _text(
        "A,B=KIND", "Columns to compare between the classes after these are found; normal, count or categorical."
    ),
    "method": _text("NAME", "How covariates and outcomes are taken in: one-step, ml, bch, two-step or naive."),
    "assignment": _text("modal|proportional", "Of rows to classes, in three steps."),
    "missing": _text(
        "drop|fit|fail",
        "Rows with missing values, of a target too: left out, fitted where the model can, or an error.",
    ),
    "k": _text("K", "Number of clusters or components, or a range to compare (the default): 1:6."),
    "vary": _list(
        "NAME=A,B,C", "Values of a parameter to compare; repeat it.", "--vary", autocompletion=parameter_settings
    ),
    "criterion": _text("NAME", "What chooses among those: bic (the default), aic or icl; silhouette for clusterings."),
    "standardise": _flag("Bring features to mean 0 and deviation 1 first.", "--standardise", "--standardize"),
    "categorical": _option(
        str,
        "HOW",
        "Text where a model takes numbers: drop (the default), one-hot, or auto: one-hot if few levels.",
        default="drop",
    ),
    "levels": _list("A,B=X<Y<Z", "Levels of text in their order; makes items ordinal. Repeat it.", "--levels"),
    "weights": _text("COLUMN", "How much each row counts."),
    "bag": _text("COLUMN", "Rows that are regions of one sample, for models that take it."),
    "time": _text("COLUMN", "Time of each row, for models of series; sorts them."),
    "sequence": _text("COLUMN", "Which series each row belongs to, for models of series."),
    "fill_gaps": _flag("Add a row of empty cells for every time that lacks, in models of series.", "--fill-gaps"),
    "ids": _text("A,B", "Columns that identify rows: not used, and written beside the results.", "--id"),
    "keep": (Keep, None),
    "views": _option(Path | None, "FILE", "TOML file that says which columns are which view, for models that take it."),
    "settings": _list(
        "NAME=VALUE", "Another parameter of the model; repeat it.", "--set", autocompletion=parameter_settings
    ),
    "random_state": _option(int, "S", "Seed.", default=0, min=0, max=2**32 - 1, show_default=True),
    "drop_missing": (DropMissing, False),
    "force": (Force, False),
    "resume": _flag("Go on with the search of a stopped run.", "--resume"),
    "workbook": _flag("Write results.xlsx too: every row with its part, and the tables of the screen.", "--workbook"),
    "no_report": _flag("Write neither report.html nor its tables.", "--no-report"),
    "quiet": _flag("Print nothing but errors.", "--quiet"),
}
"""Options of a fit: fields of `FitRequest`, and how its table is read."""
# the parser's own error, which some versions of typer bring along and others take from click
_UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])


def taking(name: str, options: Mapping[str, tuple[Any, Any]]) -> Callable[[Command], Command]:
    """Give a command further options, of which it takes those that were given as one argument."""
    more = [Parameter(n, Parameter.KEYWORD_ONLY, default=d, annotation=of) for n, (of, d) in options.items()]

    def decorated(command: Command) -> Command:
        own = signature(command, eval_str=True)

        @wraps(command)
        def with_options(**values: Any) -> int | None:
            given = {n: value for n in options if (value := values.pop(n)) is not None}
            return command(**values, **{name: given})

        shown = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in own.parameters.values() if p.name != name]
        with_options.__signature__ = own.replace(parameters=[*shown, *more])  # type: ignore[attr-defined]
        return with_options

    return decorated


reads_table = taking("reading", READING)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    for option, value in pairwise([*arguments, "--"]):
        # the parser would take it for an option that was not given, and a script's empty variable go unnoticed
        is_name = option in ("--id", "--keep")  # which a column of row names may lack
        if option.startswith("--") and ((value == "" and not is_name) or option.endswith("=")):
            raise CommandError(f"{option.rstrip('=')} is empty.", "Give it a value, or leave it out.")
    model = _asked_about(arguments)
    if model is not None:
        from majorant.cli.parameters import model_help

        print(model_help(model))
        return 0
    try:
        status = app(args=list(arguments) or ["--help"], prog_name="majorant", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except _UsageError as error:
        raise _told(error, arguments) from error
    return status if isinstance(status, int) else 0


def _asked_about(arguments: Sequence[str]) -> str | None:
    """Return the model in ``fit MODEL --help``, as the parser shows help before it reads other arguments."""
    return _model_of(arguments) if {"--help", "-h"} & set(arguments) else None


def _model_of(arguments: Sequence[str]) -> str | None:
    if len(arguments) < 2 or arguments[0] != "fit" or arguments[1].startswith("-"):
        return None
    return arguments[1]


def _told(error: Exception, arguments: Sequence[str]) -> CommandError:
    """Convert an error of the parser to CommandError."""
    message = str(getattr(error, "format_message", error.__str__)())
    option, near = getattr(error, "option_name", None), getattr(error, "possibilities", None)
    if option is not None and message.startswith("No such option"):  # its punctuation is another in every version
        from majorant.cli.settings import takes

        model, name = _model_of(arguments), option.lstrip("-").replace("-", "_")
        if model is not None and takes(model, name):
            return CommandError(
                f"no such option: {option}. {name} is a parameter of {model}: write --set {name}=...",
                f"majorant fit {model} --help lists them.",
            )
        message = f"No such option: {option}.{did_you_mean(option, near or ())}"
    command = getattr(getattr(error, "ctx", None), "command_path", "majorant")
    return CommandError(message[:1].lower() + message[1:], f"{command} --help shows what it takes.")


def _show_version(wanted: bool) -> None:
    if wanted:
        import majorant

        print(f"majorant {majorant.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Fit latent-variable models whose answer does not depend on a lucky start."""


@app.command()
@reads_table
@taking("given", FIT)
def fit(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help='Name of a model; "majorant models" lists them.', autocompletion=model_names
        ),
    ],
    table: Table,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write.")],
    *,
    given: dict[str, Any],
    reading: dict[str, Any],
) -> int:
    """Fit a model to a table and write the run: model, report, assignments, numbers.

    "majorant fit MODEL --help" lists the parameters of a model. Ctrl-C ends the search and keeps the best so far.
    """
    from majorant.cli.checked import checked
    from majorant.cli.request import FitRequest

    request = FitRequest.asked(model, table, out, given, reading)
    table_read = checked(request)
    load_scikit_learn()  # which takes time: mistakes are told before
    from majorant.cli.outcome import fit_and_write

    run = fit_and_write(request, table_read)
    return STOPPED if run.is_stopped else 0


@app.command()
@reads_table
def predict(
    run: Run,
    table: Table,
    out: Out,
    keep: Keep = None,
    drop_missing: DropMissing = False,
    force: Force = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Apply a run's model to a new table."""
    load_scikit_learn()
    from majorant.cli.messages import written
    from majorant.cli.predict import predict_and_write
    from majorant.cli.settings import parsed_names

    names = () if keep is None else parsed_names(keep)
    done = predict_and_write(run, table, out, drop_missing, force, keep=names, given=reading)
    print("\n".join(written(*done)))


@app.command()
@reads_table
def forecast(
    run: Run,
    table: Table,
    out: Out,
    steps: Annotated[int, typer.Option(metavar="H", min=1, help="How many rows ahead.", show_default=True)] = 10,
    level: Annotated[
        float, typer.Option(metavar="P", min=0.01, max=0.9999, help="Probability of the intervals.", show_default=True)
    ] = 0.9,
    future: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="The rows to come, with the columns that terms of --formula and --gating need; they say how many.",
        ),
    ] = None,
    force: Force = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Say what follows the series of a table: means, intervals, and probabilities of the states."""
    load_scikit_learn()
    from majorant.cli.forecast import forecast_and_write
    from majorant.cli.messages import written

    print("\n".join(written(*forecast_and_write(run, table, out, steps, level, future, force, reading))))


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN RUN...", help="Folders that majorant fit wrote.")],
) -> None:
    """Show runs side by side: objectives, criteria, and how far their parts agree."""
    load_scikit_learn()
    from majorant.cli.compare import compared

    print(compared(runs))


@app.command()
def report(run: Run) -> None:
    """Write the report of a run again; its table must still be there."""
    load_scikit_learn()
    from majorant.cli.messages import labelled
    from majorant.cli.report import rewrite_report

    print("\n".join(labelled("Wrote", str(rewrite_report(run)))))


@app.command()
def models() -> None:
    """List the models."""
    from majorant.cli.settings import known_models
    from majorant.summary.text import WIDTH, wrapped

    cards = known_models()
    print("\n".join(wrapped('Models, by their name in "majorant fit", and what each of them answers:', WIDTH)))
    width = max(map(len, cards), default=0) + 3
    for name, card in cards.items():
        print("\n".join(wrapped(f"{card.title}: {card.question}", WIDTH, f"{name:<{width}}")))


@app.command()
def demo(
    model: Annotated[str, typer.Argument(metavar="[MODEL]", help="Name of a model.")] = "kmeans",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write.")] = Path("demo"),
    force: Force = False,
) -> None:
    """Fit a model to a small table of the package: wines; tones for lines, earthquakes for series."""
    from majorant.cli.demo import run_demo

    run_demo(model, out, force)
