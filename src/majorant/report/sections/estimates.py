"""Estimates: every parameter of every component with its interval drawn beside it, and as a table for a paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from majorant.models.mixture_summary import heads_of, is_rest
from majorant.models.regression_mixture.summary import gating_names
from majorant.models.regression_mixture.words import why_no_errors
from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS, component_class, shape
from majorant.report.charts.scales import Linear, round_numbers, tick_labels
from majorant.report.charts.svg import coordinate
from majorant.report.columns import INTERVAL, number_column, part_column
from majorant.report.html import column_name, escaped
from majorant.report.measures.mixture import Memberships, Mixture
from majorant.report.measures.regression import Regression
from majorant.report.section import Section
from majorant.report.table import Column, Table, Value
from majorant.report.words.grammar import capital, counted, in_prose, listed, opening, verb
from majorant.results.selection import CRITERIA

SHARED = 1.5
"""Largest ratio of two slopes or two noises that is not mentioned."""

Array = NDArray[np.float64]
MOST_COMPONENTS = 9
MOST_FEATURES = 8
MOST_SHARED_DECIMALS = 3
MOST_ROWS, MOST_PLOTS = 100, 40
"""Rows of the table of a regression up to which it has every coefficient, and up to which intervals are drawn."""
PLOT_WIDTH, PLOT_HEIGHT = 172, 22


@dataclass(frozen=True)
class Term:
    """One parameter, for some components."""

    # markup
    name: str
    addition: str
    values: Array  # (k,)
    # (k,): the interval of each, where there is one
    low: Array | None
    high: Array | None
    plain: str = ""  # the name as plain text
    errors: Array | None = None  # (k,): standard errors, for coefficients that are tested against zero
    is_multiplied: bool = False  # whether the exponential of the coefficient is a factor: of odds, or of a mean
    least_decimals: int = 0  # of other terms in the same column

    @property
    def decimals(self) -> int | None:
        """Decimals that show two digits of the smallest standard error, or four digits of the largest value."""
        own = self._own_decimals
        return None if own is None else max(own, self.least_decimals)

    @cached_property
    def _own_decimals(self) -> int | None:
        if self.low is not None and self.high is not None and np.isfinite(self.high - self.low).any():
            known = np.isfinite(self.high - self.low)
            return numbers.shared_decimals(self.values, (self.high - self.low)[known] / 4)
        return numbers.shared_decimals(self.values, np.abs(self.values) / 100)

    def ends(self, component: int) -> tuple[float, float] | None:
        """Return the ends of a component's interval, where there is one."""
        if self.low is None or self.high is None or not np.isfinite(self.high[component] - self.low[component]):
            return None
        return float(self.low[component]), float(self.high[component])

    def with_reference(self) -> Term:
        """Return the term with the first component as what the others are compared with: zero, without an error."""
        unknown = (None if end is None else np.concatenate([[np.nan], end[1:]]) for end in (self.low, self.high))
        low, high = unknown
        return replace(self, low=low, high=high)

    @property
    def n_unknown(self) -> int:
        """Components without an interval."""
        return sum(self.ends(j) is None for j in range(len(self.values)))

    def text(self, value: float) -> str:
        """Format a value with the decimals of the term."""
        return numbers.scientific(value) if self.decimals is None else numbers.fixed(value, self.decimals)

    @cached_property
    def scale(self) -> Linear:
        """Return a scale around all intervals, ending at round numbers, and starting at zero where that is near."""
        low = float(np.nanmin(self.values if self.low is None else np.fmin(self.values, self.low)))
        high = float(np.nanmax(self.values if self.high is None else np.fmax(self.values, self.high)))
        if min(abs(low), abs(high)) <= high - low or high == low:
            low, high = min(low, 0.0), max(high, 0.0)
        if high == low:
            high = 1.0
        ticks = round_numbers(low, high, 4)
        step = ticks[1] - ticks[0] if len(ticks) > 1 else high - low
        return Linear(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, 4, PLOT_WIDTH - 4)


def estimates_section(regression: Regression) -> Section:
    """Build the section: weight, intercept, slopes and noise of each component, and their intervals."""
    shown = min(regression.k, MOST_COMPONENTS)
    features = regression.ranked_features[: max(MOST_FEATURES, MOST_ROWS // shown)]
    return Section(
        "components",
        "Components",
        components_headline(regression),
        _components_notes(regression, shown, len(features)),
        table=_table(terms(regression, shown, features), regression.k),
        further=coefficients_table(regression, terms(regression, shown, sorted(features)))
        if regression.k == shown
        else None,
    )


def terms(regression: Regression, shown: int, features: Sequence[int]) -> list[Term]:
    """Return the parameters of the components of largest weight, with the slopes of some features."""
    model, found = regression.run.estimator, regression.intervals

    def term(name: str, addition: str, attribute: str, feature: int | None = None, plain: str = "") -> Term:
        at = np.s_[:shown] if feature is None else np.s_[:shown, feature]
        low, high = (None, None) if found is None else (np.asarray(bound[at]) for bound in found[attribute])
        is_tested, is_slope = attribute.endswith(("intercept", "coef")), attribute == "coef"
        errors = None if found is None or not is_tested else np.asarray(model.standard_errors_[attribute][at])
        values = np.asarray(getattr(model, f"{attribute}_")[at])
        return Term(name, addition, values, low, high, plain or name, errors, is_slope and regression.multiplies)

    per = "per standard deviation" if regression.run.standardised else "per unit"
    listed = [term("Weight", "share of the rows", "weights")]
    if regression.params.get("fit_intercept", True):
        listed.append(term("Intercept", "", "intercept"))
    for f in features:
        name = regression.feature_names[f]
        contrast = regression.contrasts[f]
        if contrast is None:
            listed.append(term(f"Slope on {column_name(name)}", per, "coef", f, f"Slope on {name}"))
        else:
            against = "1 against 0" if contrast[0] == name else ""
            listed.append(term(column_name(name), against, "coef", f, name))
    if regression.has_noise:
        listed.append(term("Noise \u03c3", "standard deviation", "scale"))
    gates = gating_names(model)[:MOST_FEATURES]
    if gates:
        listed.append(
            term("Log odds", "compared with component 1, where these are 0", "gating_intercept").with_reference()
        )
    for j, (gate, name) in enumerate(zip(gates, model._in_words(gates), strict=True)):
        unit = f"compared with component 1{', per unit' if gate == name else ''}"
        of_first = term(f"Log odds on {column_name(name)}", unit, "gating_coef", j, f"Log odds on {name}")
        listed.append(of_first.with_reference())
    return listed


def mixture_estimates_section(mixture: Mixture) -> Section | None:
    """Return every estimate with its interval, for mixtures of any density; None where there are no intervals."""
    if mixture.intervals is None:
        return None
    listed, left_out = _mixture_terms(mixture)
    shown = [term for i, term in enumerate(listed) if i not in left_out]
    k = mixture.k
    rows = {i * k + j for i in range(len(listed)) for j in range(k) if i in left_out or j >= MOST_COMPONENTS}
    return Section(
        "estimates",
        "Estimates",
        _estimates_headline(sum(len(t.values) for t in shown), sum(t.n_unknown for t in shown)),
        _estimates_notes(mixture, len(left_out)),
        table=replace(_table(listed, mixture.k, mixture.part), only_in_copies=rows),
        further=coefficients_table(mixture, listed) if k <= MOST_COMPONENTS else None,
    )


def _mixture_terms(mixture: Mixture) -> tuple[list[Term], set[int]]:
    """Return weights, then every number of every other estimate; and which of them the page leaves out."""
    model, found = mixture.run.estimator, mixture.intervals or {}
    listed: list[Term] = []
    left_out: set[int] = set()
    for name, ends in sorted(found.items(), key=lambda item: item[0] != "weights"):
        each = getattr(model, f"{name}_"), *ends
        values, low, high = (model._of_each(name, one).reshape(mixture.k, -1) for one in each)
        if name == "weights":
            listed.append(Term("Weight", "share of the rows", values[:, 0], low[:, 0], high[:, 0], "Weight"))
            continue
        entries, said = model._entry_names(name), _singular(name.replace("_", " "))
        if entries is None and values.shape[1] == 1:
            listed.append(Term(capital(said), "", values[:, 0], low[:, 0], high[:, 0], capital(said)))
            continue
        entries = entries or [str(j + 1) for j in range(values.shape[1])]
        by_feature = entries == model._feature_names()
        heads = model._in_words(mixture.run.feature_names) if by_feature else heads_of(model, entries)
        kept, d = list(range(len(heads))), mixture.n_features
        if said == "covariance" and len(heads) == d * d > 1:  # which is symmetric
            kept = [i * d + j for i in range(d) for j in range(i, d)]
        ranked = mixture.ranked_features if by_feature else [j for j in kept if not is_rest(entries, j)]
        chosen = ranked[:MOST_FEATURES]
        left_out |= {len(listed) + place for place, j in enumerate(kept) if j not in chosen}
        for j in kept:
            first, _, second = heads[j].partition(", ")
            own = ("variance", first) if said == "covariance" and second in (first, "") else (said, heads[j])
            plain = " ".join(own) if heads[j].startswith("to ") else " of ".join(own)
            listed.append(Term(column_name(own[1]), own[0], values[:, j], low[:, j], high[:, j], plain))
    return listed, left_out


def _singular(said: str) -> str:
    return f"{said[:-3]}y" if said.endswith("ies") else said.removesuffix("s")


def _aligned(listed: Sequence[Term]) -> list[Term]:
    """Return the terms for a column of print, where they share their decimals, up to three."""
    least = min(max((term.decimals or 0 for term in listed), default=0), MOST_SHARED_DECIMALS)
    return [replace(term, least_decimals=least) for term in listed]


def _table(listed: Sequence[Term], k: int, part: str = "component") -> Table:
    """Return the table of all terms, each with one row per component, which may have another name."""
    rows = [(term, j) for term in listed for j in range(len(term.values))]
    in_print = [(term, j) for term in _aligned(listed) for j in range(len(term.values))]
    ends = [term.ends(j) for term, j in rows]

    def written_ends(of: Sequence[tuple[Term, int]], i: int) -> list[str]:
        return [numbers.DASH if end is None else term.text(end[i]) for (term, _), end in zip(of, ends, strict=True)]

    low, high = written_ends(rows, 0), written_ends(rows, 1)
    written = [a if end is None else f"{a} to {b}" for end, a, b in zip(ends, low, high, strict=True)]
    values = [float(term.values[j]) for term, j in rows]
    columns = [
        Column("Parameter", [term.plain for term, _ in rows], where="copies"),
        part_column(capital(part), [j for _, j in rows], k),
        Column(
            "Estimate",
            values,
            texts=[t.text(v) for (t, _), v in zip(rows, values, strict=True)],
            printed=[t.text(v) for (t, _), v in zip(in_print, values, strict=True)],
            css="number",
        ),
    ]
    if any(t.is_multiplied for t in listed):
        with np.errstate(over="ignore"):  # coefficients that run to infinity
            factors = [np.exp(v) if t.is_multiplied else None for (t, _), v in zip(rows, values, strict=True)]
        columns.append(number_column("exp", factors, 3, "number wide-only"))
    if any(t.errors is not None for t in listed):
        columns += _tests(in_print)
    drawn = [
        _plot(t, j, k, said) if i < MOST_PLOTS else ""
        for i, ((t, j), said) in enumerate(zip(rows, written, strict=True))
    ]
    columns += [
        Column(INTERVAL, written, css="number", where="page"),
        Column(
            "95 % low", [end and end[0] for end in ends], texts=written_ends(in_print, 0), css="number", where="copies"
        ),
        Column(
            "95 % high", [end and end[1] for end in ends], texts=written_ends(in_print, 1), css="number", where="copies"
        ),
        Column("", [None] * len(rows), markup=drawn, css="bar-cell", where="page"),
    ]
    places = np.cumsum([0, *(len(term.values) for term in listed)]).tolist()
    n_shown = sum(column.where in ("everywhere", "page") for column in columns)
    groups = {at: _heading(term, n_shown) for at, term in zip(places, listed, strict=False)}
    return Table("estimates", columns, dense=False, groups=groups)


def _tests(rows: Sequence[tuple[Term, int]]) -> list[Column]:
    """Return standard errors (in copies), z and p of coefficients; empty for other parameters."""
    errors = [np.nan if term.errors is None else float(term.errors[j]) for term, j in rows]
    known = [error if np.isfinite(error) and error > 0 else None for error in errors]
    texts = [numbers.DASH if e is None else term.text(e) for (term, _), e in zip(rows, known, strict=True)]
    ratios = [None if e is None else float(term.values[j]) / e for (term, j), e in zip(rows, known, strict=True)]
    p_values = [None if z is None else float(2 * ndtr(-abs(z))) for z in ratios]
    return [
        Column("SE", known, texts=texts, css="number wide-only", where="copies"),
        number_column("z", ratios, 2, "number wide-only"),
        number_column("p", p_values, numbers.p_value, "number wide-only"),
    ]


def _heading(term: Term, n_columns: int) -> str:
    scale = term.scale
    ends = "".join(f"<span>{escaped(text)}</span>" for text in tick_labels([scale.low, scale.high]))
    return (
        f'<tr class="group"><td colspan="{n_columns - 1}"><b>{term.name}</b>'
        f'<span class="quiet">{term.addition}</span></td>'
        f'<td class="bar-cell"><span class="ends">{ends}</span></td></tr>'
    )


def _plot(term: Term, j: int, k: int, interval: str) -> str:
    """Return the markup of an estimate on its interval; all of a term share one scale."""
    scale = term.scale
    c, colour, middle = coordinate, component_class(j, k), PLOT_HEIGHT / 2
    parts = [f'<line class="grid" x1="0" y1="{c(middle)}" x2="{PLOT_WIDTH}" y2="{c(middle)}"/>']
    if scale.low <= 0 <= scale.high:
        zero = c(scale(0.0))
        parts.append(f'<line class="axis" x1="{zero}" y1="1" x2="{zero}" y2="{PLOT_HEIGHT - 1}"/>')
    ends = term.ends(j)
    if ends is not None:
        x1, x2 = (c(scale(end)) for end in ends)
        parts.append(f'<path class="stroke-{colour} interval" d="M{x1} {c(middle)}L{x2} {c(middle)}"/>')
    of = j if k <= N_COLOURS else 0
    parts.append(f'<path class="fill-{colour}" d="{shape(of, scale(float(term.values[j])), middle, 3.6)}"/>')
    label = escaped(f"{term.text(float(term.values[j]))}, {interval}")
    return f'<svg viewBox="0 0 {PLOT_WIDTH} {PLOT_HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _estimates_headline(n_estimates: int, n_unknown: int) -> str:
    if not n_unknown:
        return "The rows determine every estimate that is shown."
    return f"{opening(n_unknown)} of {in_prose(n_estimates)} estimates {verb(n_unknown, 'has', 'have')} no interval."


def _estimates_notes(mixture: Mixture, n_left_out: int) -> list[str]:
    texts = [
        "<b>An interval</b> is the estimate give or take 1.96 standard errors, from the observed information: on the "
        "logit scale for probabilities, on the log scale for positive numbers. An estimate at the edge of its range "
        f"has none. The intervals take the model and the number of {mixture.parts} as given."
    ]
    if mixture.run.standardised:
        texts.append("Estimates are those of standardised columns: mean 0, standard deviation 1.")
    if n_left_out:
        texts.append(
            f"At most eight of each kind are shown, of features those that the {mixture.parts} explain best; "
            f"{counted(n_left_out, 'other')} {verb(n_left_out, 'is', 'are')} in the copies below the table."
        )
    return texts


def components_headline(regression: Regression) -> str:
    """State the clearest difference between the components."""
    k, feature = regression.k, regression.main_feature
    if k == 1:
        return f"One {'line' if regression.has_lines else 'component'} describes all rows."
    if regression.run.estimator.is_exact_:
        return "All components are the same line."
    if regression.is_curved:
        return f"{capital(in_prose(k))} components, which differ in several terms of the same column."
    slopes, scale = regression.lines.coef[:, feature], regression.lines.scale
    found, along = regression.intervals, capital(regression.along(feature))
    if found is not None:
        low, high = (bound[:, feature] for bound in found["coef"])
        rising, falling = (np.flatnonzero(side) for side in (low > 0, high < 0))
        if len(rising) and len(falling):
            return (
                f"{along} {_components(rising)} {verb(len(rising), 'rises', 'rise')} and "
                f"{_components(falling)} {verb(len(falling), 'falls', 'fall')}."
            )
    loud, quiet = int(scale.argmax()), int(scale.argmin())
    if regression.noise_ratio >= 2:
        return f"Component {loud + 1} is {_times(regression.noise_ratio)} times noisier than component {quiet + 1}."
    steep, flat = int(np.abs(slopes).argmax()), int(np.abs(slopes).argmin())
    ratio = float(np.abs(slopes[steep])) / float(np.abs(slopes[flat])) if slopes[flat] != 0 else np.inf
    if ratio >= SHARED:
        times = f"{_times(ratio)} times as" if ratio < 1000 else "far more"
        than = "as" if ratio < 1000 else "than"
        moves = "moves" if regression.contrasts[feature] else "is"
        far = times.replace(" as", " as far") if regression.contrasts[feature] else f"{times} steep"
        return f"{along} component {steep + 1} {moves} {far} {than} component {flat + 1}."
    if told := _told_apart(regression):
        return told
    if found is None and slopes[steep] * slopes[flat] < 0:
        return f"{along} the components run in opposite directions."
    return f"{along} the components run alike; they differ in height."


def _told_apart(regression: Regression) -> str:
    """Say along which feature intervals of two slopes lie apart, the one of largest effect first; "" if along none."""
    if regression.intervals is None:
        return ""
    lows, highs = regression.intervals["coef"]
    for feature in regression.ranked_features:
        low, high = lows[:, feature], highs[:, feature]
        if low.max() > high.min():
            along = f"{capital(regression.along(feature))} the slope of component"
            return f"{along} {int(low.argmax()) + 1} is above that of component {int(high.argmin()) + 1}."
    return ""


def _what_they_are(regression: Regression) -> list[str]:
    """Explain coefficients and weights where components are not lines."""
    texts = []
    if regression.response.predicts:
        texts.append(f"<b>Intercepts and slopes</b> are of {escaped(regression.response.predicts)}.")
    if regression.has_gating:
        texts.append("<b>Weights</b> depend on other columns; those shown are their means over the rows.")
    if regression.has_groups:
        n = len(regression.run.estimator.groups_)
        texts.append(f"All rows of a group have one component; there are {numbers.integer(n)} groups.")
    return texts


def _components(which: object) -> str:
    names = [str(j + 1) for j in np.asarray(which).tolist()]
    return f"component{'' if len(names) == 1 else 's'} {listed(names)}"


def _times(ratio: float) -> str:
    return numbers.fixed(ratio, 1 if ratio < 10 else 0)


def _components_notes(regression: Regression, n_shown: int, n_features_shown: int) -> list[str]:
    texts = []
    if regression.intervals is None:
        texts.append(f"<b>There are no intervals:</b> {escaped(why_no_errors(regression.run.estimator))}.")
    else:
        scales = "that of a weight is computed on the logit scale"
        if regression.has_noise:
            scales = "those of weight and \u03c3 are computed on the logit and log scale"
        texts.append(
            "<b>An interval</b> is the estimate give or take 1.96 standard errors, from the observed information; "
            f"{scales}. A slope whose interval holds 0 may be none at all."
        )
        noise = " and the noise as normal" if regression.has_lines else ""
        texts.append(f"The intervals take the number of components as given{noise}.")
        texts.append(
            "<b>z</b> is an estimate over its standard error, <b>p</b> how often it is as large if the truth is zero."
        )
    if regression.multiplies:
        of = "the mean" if "logarithm" in regression.response.predicts else "the odds"
        texts.append(f"<b>exp</b> is the factor per unit: of {of}.")
    texts += _what_they_are(regression)
    if regression.k > 1:
        texts.append("Components are numbered by weight.")
    left_out = regression.n_features - n_features_shown
    if left_out > 0:
        texts.append(
            f"The features of the largest effect are shown; {counted(left_out, 'other')} "
            f"{verb(left_out, 'is', 'are')} left out."
        )
    if n_shown < regression.k:
        texts.append(f"The {n_shown} heaviest of {regression.k} components are shown.")
    if regression.run.weights is not None:
        texts.append("The fit counted rows by their weights.")
    return texts


STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
OF_ERRORS = "Standard errors, or 95 % intervals, in brackets. * p < 0.05, ** p < 0.01, *** p < 0.001, two-sided."
OF_INTERVALS = "95 % intervals in brackets."


def coefficients_table(fit: Memberships, terms: Sequence[Term]) -> Table:
    """Return one column for each component: every estimate above its standard error, or else its interval.

    Stars mark coefficients, of which zero would mean no effect; not shares nor scales, which are never zero.
    """
    rows: list[tuple[str, str, Sequence[Value], Sequence[str]]] = []  # head on the page and of the CSV, values, texts
    for term in _aligned(terms):
        found = term.values.tolist()
        rows.append((term.plain, term.plain, found, [term.text(v) + _stars(term, j) for j, v in enumerate(found)]))
        if term.errors is not None:
            errors = term.errors.tolist()
            texts = [f"({term.text(error)})" if error > 0 else "" for error in errors]
            rows.append(("", f"{term.plain}, standard error", errors, texts))
        elif term.low is not None:
            ends = [_in_brackets(term, j) for j in range(len(found))]
            rows.append(("", f"{term.plain}, 95 % interval", ends, ends))
    n_terms, n = len(rows), round(fit.n_counted, 6)
    counts: dict[str, float] = {"Rows": int(n) if n.is_integer() else n, "Parameters": fit.run.estimator.n_parameters_}
    rows += [(head, head, [v], [str(v) if isinstance(v, int) else numbers.fixed(v, 1)]) for head, v in counts.items()]
    for name, value in {fit.card.objective_name: fit.objective, **fit.criteria}.items():
        head = name.upper() if name in CRITERIA else capital(name)
        rows.append((head, head, [value], [numbers.fixed(value, 2)]))
    columns = [Column("Parameter", [said for _, said, *_ in rows], texts=[head for head, *_ in rows])]
    for j in range(fit.k):
        values = [found[j] if j < len(found) else None for *_, found, _ in rows]
        texts = [written[j] if j < len(written) else "" for *_, written in rows]
        columns.append(Column(f"{capital(fit.part)} {j + 1}", values, texts=texts, css="number", aligns=False))
    has_errors = any(term.errors is not None for term in terms)
    note = OF_ERRORS if has_errors else OF_INTERVALS if any(term.low is not None for term in terms) else ""
    return Table("coefficients", columns, is_on_page=False, rules=[n_terms], note=note)


def _stars(term: Term, j: int) -> str:
    """Return the stars of a coefficient by its two-sided test against zero."""
    if term.errors is None or not term.errors[j] > 0:
        return ""
    p = 2 * ndtr(-abs(term.values[j] / term.errors[j]))
    return next((sign for limit, sign in STARS if p < limit), "")


def _in_brackets(term: Term, j: int) -> str:
    ends = term.ends(j)
    return "" if ends is None else f"[{term.text(ends[0])}, {term.text(ends[1])}]"
