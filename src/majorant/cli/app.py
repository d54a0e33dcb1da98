"""The commands and their arguments; each calls the module that does the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
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

Table = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="CSV, TSV, Excel, Parquet, Arrow or .npz file; - for standard input."),
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that majorant fit wrote.")]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="The same as --missing drop.")]
Keep = Annotated[
    str | None,
    typer.Option(metavar="A,B,C", help='Columns of the table to write beside the results; "*" for all.'),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what an earlier run wrote.")]
READING = {
    "sep": Annotated[str | None, typer.Option(metavar="SIGN", help="What separates the columns of a text.")],
    "decimal": Annotated[str | None, typer.Option(metavar="SIGN", help='Decimal sign: "." (the default) or ",".')],
    "thousands": Annotated[
        str | None, typer.Option(metavar="SIGN", help="What groups the digits of numbers by three.")
    ],
    "encoding": Annotated[str | None, typer.Option(metavar="NAME", help="Of a text: utf-8 (the default), cp1252, ...")],
    "skip_rows": Annotated[int | None, typer.Option(metavar="N", min=0, help="Lines above the column names.")],
    "na": Annotated[str | None, typer.Option(metavar="A,B", help="What stands where a cell is missing: -99,999.")],
    "sheet": Annotated[str | None, typer.Option(metavar="NAME", help="Sheet of a workbook, by name or number.")],
}
"""How a table is read: options of every command that reads one, and fields of `Reading`."""
# the parser's own error, which some versions of typer bring along and others take from click
_UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])


def reads_table(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Give a command the options of READING; it takes those that were given as one argument, `reading`."""
    own = signature(command, eval_str=True)
    more = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=READING[name]) for name in READING]

    @wraps(command)
    def with_options(**values: Any) -> int | None:
        reading = {name: value for name in READING if (value := values.pop(name)) is not None}
        return command(**values, reading=reading)

    shown = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in own.parameters.values() if p.name != "reading"]
    with_options.__signature__ = own.replace(parameters=[*shown, *more])  # type: ignore[attr-defined]
    return with_options


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
def fit(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help='Name of a model; "majorant models" lists them.', autocompletion=model_names
        ),
    ],
    table: Table,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write.")],
    target: Annotated[str | None, typer.Option(metavar="Y", help="Column to predict, for models that do.")] = None,
    features: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Columns to use; all numeric ones by default.")
    ] = None,
    formula: Annotated[
        str | None,
        typer.Option(metavar="F", help='Instead of the two: "y ~ x + I(x**2) | id", for models that take it.'),
    ] = None,
    family: Annotated[
        str | None, typer.Option(metavar="NAME", help="Distribution of the target, for models that have several.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Rows that belong together, for models that take it.")
    ] = None,
    gating: Annotated[
        str | None, typer.Option(metavar='"A + B"', help="What the weights depend on, for models that take it.")
    ] = None,
    covariates: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C", help="Columns that the shares of the parts depend on; text has a column for each level."
        ),
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Population of each row, for models that compare several of them."),
    ] = None,
    equal_items: Annotated[
        str | None,
        typer.Option(metavar="ITEMS", help="Items that are measured alike in all populations: all, none, or A,B."),
    ] = None,
    invariance_tests: Annotated[
        bool, typer.Option("--invariance-tests", help="Test whether items are measured alike in all populations.")
    ] = False,
    component_labels: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Class of each row where it is known, from 1 or in words; an empty cell where not."
        ),
    ] = None,
    outcomes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B=KIND",
            help="Columns to compare between the classes after these are found; normal, count or categorical.",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="How covariates and outcomes are taken in: one-step, ml, bch, two-step or naive."
        ),
    ] = None,
    assignment: Annotated[
        str | None, typer.Option(metavar="modal|proportional", help="Of rows to classes, in three steps.")
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="drop|fit|fail",
            help="Rows with missing values, of a target too: left out, fitted where the model can, or an error.",
        ),
    ] = None,
    offset: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help='Known part of the predictor, such as "log(T)"; for models that take it.'),
    ] = None,
    trials: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Number of trials of each row, for models that take it.")
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(metavar="K", help="Number of clusters or components, or a range to compare (the default): 1:6."),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="NAME=A,B,C",
            help="Values of a parameter to compare; repeat it.",
            autocompletion=parameter_settings,
        ),
    ] = None,
    criterion: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="What chooses among those: bic (the default), aic or icl; silhouette for clusterings."
        ),
    ] = None,
    standardise: Annotated[
        bool, typer.Option("--standardise", "--standardize", help="Bring features to mean 0 and deviation 1 first.")
    ] = False,
    categorical: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="Text where a model takes numbers: drop (the default), one-hot, or auto: one-hot if few levels.",
        ),
    ] = "drop",
    levels: Annotated[
        list[str] | None,
        typer.Option(
            "--levels", metavar="A,B=X<Y<Z", help="Levels of text in their order; makes items ordinal. Repeat it."
        ),
    ] = None,
    weights: Annotated[str | None, typer.Option(metavar="COLUMN", help="How much each row counts.")] = None,
    bag: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Rows that are regions of one sample, for models that take it."),
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Time of each row, for models of series; sorts them.")
    ] = None,
    sequence: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Which series each row belongs to, for models of series.")
    ] = None,
    fill_gaps: Annotated[
        bool,
        typer.Option("--fill-gaps", help="Add a row of empty cells for every time that lacks, in models of series."),
    ] = False,
    ids: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="A,B", help="Columns that identify rows: not used, and written beside the results."
        ),
    ] = None,
    keep: Keep = None,
    views: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML file that says which columns are which view, for models that take it."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Another parameter of the model; repeat it.",
            autocompletion=parameter_settings,
        ),
    ] = None,
    random_state: Annotated[int, typer.Option(metavar="S", min=0, max=2**32 - 1, help="Seed.", show_default=True)] = 0,
    drop_missing: DropMissing = False,
    force: Force = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the search of a stopped run.")] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write neither report.html nor its tables.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
    *,
    reading: dict[str, Any],
) -> int:
    """Fit a model to a table and write the run: model, report, assignments, numbers.

    "majorant fit MODEL --help" lists the parameters of a model. Ctrl-C ends the search and keeps the best so far.
    """
    from majorant.cli.checked import checked
    from majorant.cli.request import FitRequest
    from majorant.cli.settings import parsed_names, parsed_size
    from majorant.cli.text_tables import Reading

    request = FitRequest(
        model=model,
        table=table,
        out=out,
        target=target,
        features=() if features is None else parsed_names(features),
        formula=formula,
        family=family,
        groups=groups,
        gating=gating,
        covariates=() if covariates is None else parsed_names(covariates),
        population=population,
        equal_items=() if equal_items is None else parsed_names(equal_items),
        component_labels=component_labels,
        outcomes=() if outcomes is None else parsed_names(outcomes),
        method=method,
        assignment=assignment,
        invariance_tests=invariance_tests,
        missing="drop" if drop_missing and missing is None else missing,
        offset=offset,
        trials=trials,
        k=None if k is None else parsed_size(k),
        vary=tuple(vary or ()),
        criterion=criterion,
        standardise=standardise,
        categorical=categorical,
        weights=weights,
        bag=bag,
        time=time,
        sequence=sequence,
        fill_gaps=fill_gaps,
        ids=() if ids is None else parsed_names(ids),
        keep=() if keep is None else parsed_names(keep),
        reading=Reading(**reading, levels=tuple(levels or ())),
        views=views,
        settings=tuple(settings or ()),
        random_state=random_state,
        force=force,
        resume=resume,
        report=not no_report,
        quiet=quiet,
    )
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
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write: .csv, .tsv, .xlsx or .parquet.")],
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
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write: .csv, .tsv, .xlsx or .parquet.")],
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
    first: Annotated[Path, typer.Argument(metavar="RUN", help="Folder that majorant fit wrote.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Another one.")],
) -> None:
    """Show two runs side by side: objectives, criteria, and how far their parts agree."""
    load_scikit_learn()
    from majorant.cli.compare import compared

    print(compared(first, second))


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
