"""Reading of tables from text, in the manner that the user or the text itself says."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, BinaryIO

import polars as pl

from majorant.cli.errors import CommandError, did_you_mean
from majorant.cli.settings import parsed_names
from majorant.summary import counted

_SEPARATORS = (",", ";", "\t", "|")
_NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_LONGEST_HEADER = 1_000_000
_GZIP = b"\x1f\x8b"
_NO_TEXT = {
    b"PAR1": "a parquet file: name it .parquet",
    b"PK\x03\x04": "a workbook or an archive: name it .xlsx, or save its sheet as CSV",
}
_FORMS = (
    (r"\d,\d", r"\d{1,3}(?:,\d{3})*(?:\.\d*)?", "--thousands ,"),
    (r"\d,\d", r"\d*(?:,\d+)?", "--decimal ,"),
    (r"\d\.\d{3}", r"\d{1,3}(?:\.\d{3})*(?:,\d*)?", "--decimal , --thousands ."),
)
"""What some and all cells of a column look like if these options read its numbers; the first that fits counts."""
_UNITS = r"(^[€$£]|(?:%|‰|€|\$|£|°C|°F)$)"
"""Signs of a unit before or after a number."""
_MISSING = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]


@dataclass(frozen=True)
class Reading:
    """How a table is read from its file, where that is not what the file itself shows."""

    # what stands between columns; by default whichever of comma, semicolon, tab and | is most frequent in the header
    sep: str | None = None
    decimal: str = "."  # decimal sign: a point or a comma
    thousands: str | None = None  # what groups the digits of numbers by three
    encoding: str = "utf-8"  # of the text
    skip_rows: int = 0  # lines before the one with column names
    sheet: str | None = None  # name of the sheet of a workbook, or its number from 1; the first by default
    # what stands where a cell is missing, beside empty cells and ``NA``: numbers or texts, comma-separated
    na: str | None = None
    # levels of columns of text in their order, ``column=low<mid<high``; of all columns that have no others, where none
    # is named
    levels: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.sep is not None and len(_NAMED_SEPARATORS.get(self.sep, self.sep)) != 1:
            raise CommandError(f'--sep must be one character, or "tab"; got "{self.sep}".')
        if self.decimal not in (".", ","):
            raise CommandError(f'--decimal must be "." or ","; got "{self.decimal}".')
        if self.thousands == self.decimal:
            raise CommandError(f'"{self.decimal}" cannot be the decimal sign and separate thousands.')
        try:
            "".encode(self.encoding)
        except LookupError:
            raise CommandError(f'there is no encoding "{self.encoding}".', "One is latin-1, another cp1252.") from None

    @property
    def codes(self) -> list[str]:
        """What stands where a cell is missing."""
        return [] if self.na is None else [code.strip() for code in self.na.split(",") if code.strip()]

    def without_codes(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a table of any file without the codes for missing cells."""
        numbers = [float(code) for code in self.codes if is_number(code)]
        told = {
            name: pl.col(name).cast(pl.Float64).is_in(numbers) if dtype.is_numeric() else pl.col(name).is_in(self.codes)
            for name, dtype in frame.schema.items()
            if self.codes and (dtype.is_numeric() or dtype == pl.String)
        }
        return frame.with_columns(pl.when(~met).then(pl.col(name)).alias(name) for name, met in told.items())

    def orders(self, frame: pl.DataFrame) -> dict[str, tuple[str, ...]]:
        """Return the levels of columns of text in the order that was given, by column."""
        found: dict[str, tuple[str, ...]] = {}
        for text in self.levels:
            before, equals, after = text.partition("=")
            levels = tuple(level.strip() for level in (after if equals else text).split("<"))
            if len(set(levels)) < max(2, len(levels)) or "" in levels:
                raise CommandError(
                    f'--levels takes two different levels or more in their order; got "{text}".',
                    'For example --levels "q1=never<rarely<often".',
                )
            texts = [name for name in frame.columns if frame[name].dtype in (pl.String, pl.Categorical, pl.Enum)]
            names = (
                [n.strip() for n in parsed_names(before)]
                if equals
                else [n for n in texts if not _foreign(frame[n], levels)]
            )
            wrong = next((name for name in names if name not in frame.columns), None)
            if wrong is not None:
                raise CommandError(
                    f'--levels names a column "{wrong}" that is not there.{did_you_mean(wrong, frame.columns)}'
                )
            if not names:
                raise CommandError(
                    f'no column of text has the levels of --levels "{text}" alone.', "Name it: column=low<mid<high."
                )
            found |= dict.fromkeys(names, levels)
        return found

    def with_levels(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a table whose columns of text know the order of their levels."""
        orders = self.orders(frame)
        for name, levels in orders.items():
            if frame[name].dtype.is_numeric():
                raise CommandError(
                    f'"{name}" holds numbers, which have an order: --levels is for text.',
                    f"An item of ordered numbers is told by --set \"items={{'{name}': 'ordinal'}}\".",
                )
            if foreign := _foreign(frame[name], levels):
                raise CommandError(
                    f'"{name}" holds "{foreign[0]}", which --levels does not list.{did_you_mean(foreign[0], levels)}',
                    f"It lists {', '.join(levels)}.",
                )
        return frame.with_columns(frame[name].cast(pl.String).cast(pl.Enum(own)) for name, own in orders.items())

    @property
    def options(self) -> list[tuple[str, str]]:
        """The options of the command that were given, with their values."""
        given = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]
        each = [(name, one) for name, value in given for one in (value if name == "levels" else [value])]
        return [(f"--{name.replace('_', '-')}", str(value)) for name, value in each]

    def to_state(self) -> dict[str, Any]:
        """Return the state as plain values, for saving."""
        return {**asdict(self), "levels": list(self.levels)}

    def separator(self, header: str) -> str:
        """Return what stands between the columns of a text with this first line."""
        if self.sep is not None:
            return _NAMED_SEPARATORS.get(self.sep, self.sep)
        unquoted = re.sub('"[^"]*"', "", header)
        return max(_SEPARATORS, key=unquoted.count)

    def text(self, stream: BinaryIO) -> BinaryIO:
        """Return the text in UTF-8 from the line of column names on, decompressed.

        Some versions of polars do not notice truncated files.
        """
        is_packed = stream.read(2) == _GZIP
        stream.seek(0)
        if not is_packed and self.encoding == "utf-8" and self.skip_rows == 0:
            return stream
        content = gzip.GzipFile(fileobj=stream).read() if is_packed else stream.read()
        if self.encoding != "utf-8":
            try:
                content = content.decode(self.encoding).encode()
            except UnicodeDecodeError as error:
                raise CommandError(f"is not {self.encoding} text: byte {error.start} cannot be read.") from error
        lines = content.splitlines(keepends=True)
        if 0 < len(lines) <= self.skip_rows:
            line = self.skip_rows + 1
            raise CommandError(f"has no line {line}: --skip-rows passes over all its {len(lines)} lines.")
        return io.BytesIO(b"".join(lines[self.skip_rows :]))


def _foreign(column: pl.Series, levels: Collection[str]) -> list[str]:
    """Return the texts of a column that are not among its levels."""
    known = column.cast(pl.String).drop_nulls().unique().sort().to_list()
    return [text for text in known if text not in levels]


AS_USUAL = Reading()
"""As the file itself shows."""


def read_text(given: BinaryIO, reading: Reading) -> pl.DataFrame:
    """Read a table from text; raise CommandError with the end of a sentence that begins with the file's name."""
    start = given.read(4)
    given.seek(0)
    if start in _NO_TEXT:
        raise CommandError(f"is {_NO_TEXT[start]}.")
    stream = reading.text(given)
    header = _header(stream)
    if "\r" in re.sub('"[^"]*"', "", header):
        raise CommandError("ends its lines with CR alone: save it again with LF or CRLF.")
    separator = reading.separator(header)
    names = next(csv.reader([header], delimiter=separator), [])
    if names and all(map(is_number, names)) and not all(name.strip().isdecimal() for name in names):
        raise CommandError(f"has numbers such as {names[0].strip()} in its first line: put column names above it.")
    if names[:1] == ["sep="]:
        raise CommandError(f'begins with "{header}": take that line out, or pass over it with --skip-rows 1.')
    refuse_repeated(names)
    frame = pl.read_csv(
        stream,
        separator=separator,
        infer_schema_length=None,
        null_values=[*_MISSING, *reading.codes],
        try_parse_dates=False,
        decimal_comma=reading.decimal == "," != separator,
    )
    if frame.width == 1 and len(words := header.split()) > 1 and _holds_words(frame.to_series(), len(words)):
        raise CommandError("has spaces between its columns: separate them by commas, semicolons, tabs or |.")
    return as_numbers(frame, reading)


def refuse_repeated(names: Sequence[str]) -> None:
    """Raise CommandError for a name of two columns, which a reader would change without a word."""
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise CommandError(f'has two columns "{repeated}": rename one of them.')


def first_long_line(given: BinaryIO, reading: Reading) -> str:
    """Describe the first line that has more fields than there are column names."""
    stream = reading.text(given)
    header = _header(stream)
    with io.TextIOWrapper(io.BytesIO(stream.read()), encoding="utf-8-sig", newline="") as text:
        lines = csv.reader(text, delimiter=reading.separator(header))
        expected = 0
        for line in lines:
            expected = expected or len(line)
            if len(line) > expected:
                return (
                    f"line {lines.line_num + reading.skip_rows} has {counted(len(line), 'field')}, "
                    f"and the line of column names {expected} ({header[:40]})"
                )
    return "a line has more fields than the first one"


def is_number(text: str) -> bool:
    """Return whether a text is a number, as Python writes it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def options_for_numbers(column: pl.Series) -> str | None:
    """Return the options that would read a text column of numbers in another form; None if it is no such column."""
    if column.dtype != pl.String or column.null_count() == len(column):
        return None
    texts = _without_unit(column.drop_nulls().str.strip_chars())
    for sign, form, options in _FORMS:
        if texts.str.contains(sign).any() and texts.str.contains(rf"^[-+]?(?:{form})$").all():
            return options
    return None


def _without_unit(text: pl.Series) -> pl.Series:
    """Drop a unit that is that of every cell."""
    units = text.str.extract(_UNITS)
    if units.null_count() > text.null_count() or units.drop_nulls().n_unique() != 1:
        return text
    return text.str.replace(_UNITS, "").str.strip_chars()


def _holds_words(column: pl.Series, number: int) -> bool:
    """Return whether every text has `number` words, separated by spaces."""
    return column.dtype == pl.String and bool((column.drop_nulls().str.count_matches(r"\S+") == number).all())


def _header(stream: BinaryIO) -> str:
    """Return the first line that is not blank; a name in quotes may hold line breaks."""
    header = b""
    while len(header) < _LONGEST_HEADER and (line := stream.readline(_LONGEST_HEADER)):
        header += line if header or line.strip() else b""
        if header and header.count(b'"') % 2 == 0:
            break
    stream.seek(0)
    return header[:_LONGEST_HEADER].decode("utf-8-sig").rstrip("\r\n")


def as_numbers(frame: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """Convert columns of text that hold numbers alone."""
    return frame.with_columns(
        [_number_if_it_is_one(frame[c], reading) for c in frame.columns if frame[c].dtype == pl.String]
    )


def _number_if_it_is_one(column: pl.Series, reading: Reading) -> pl.Series:
    """Convert text such as " 3", "inf", "60 %" or, where so read, "1,234.5" to numbers if the whole column allows it.

    A unit is dropped if it is that of every cell.
    """
    if column.null_count() == len(column):
        return column
    text = _without_unit(column.str.strip_chars())
    if reading.thousands is not None:
        mark, point = re.escape(reading.thousands), re.escape(reading.decimal)
        grouped = text.str.contains(rf"^[+-]?\d{{1,3}}(?:{mark}\d{{3}})+(?:{point}\d*)?$")
        text = text.zip_with(~grouped, text.str.replace_all(reading.thousands, "", literal=True))
    if reading.decimal == ",":
        if text.str.contains(".", literal=True).any():
            return column  # a point that is no decimal sign and separates no thousands
        text = text.str.replace(",", ".", literal=True)
    numbers = text.cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == column.null_count() else column
