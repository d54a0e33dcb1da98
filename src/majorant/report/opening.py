"""The top of a page: its title, what the fit says in two sentences, and five numbers."""

from __future__ import annotations

import math

import numpy as np

from majorant.report import numbers
from majorant.report.fit import Fit
from majorant.report.html import column_name, escaped, shortened
from majorant.report.measures.classification import Classification
from majorant.report.measures.clustering import Clustering
from majorant.report.measures.latent_class_analysis import LatentClasses
from majorant.report.measures.mixture import CLEAR, Memberships, Mixture
from majorant.report.measures.partition import Partition
from majorant.report.measures.regression import Regression
from majorant.report.measures.representation import Representation
from majorant.report.section import Header
from majorant.report.words import search as search_words
from majorant.report.words.grammar import capital, counted, in_prose, listed, opening, verb
from majorant.search.record import named

Fact = tuple[str, str, str]
MOST_SIZES_IN_LEDE, MOST_WEIGHTS_IN_LEDE, MOST_IN_LEDE = 6, 6, 3


def shape_fact(fit: Fit) -> Fact:
    """Return the numbers of rows and features."""
    text = f"{numbers.integer(fit.n_rows - fit.n_lacking)}\u00a0{numbers.TIMES}\u00a0{numbers.integer(fit.n_features)}"
    left_out = f"{counted(fit.n_left_out, 'row', words=False)} left out" if fit.n_left_out else ""
    return ("Rows \u00d7 features", text, ", ".join(filter(None, ["standardised" * fit.run.standardised, left_out])))


def objective_fact(fit: Fit, addition: str = "") -> Fact:
    """Return the objective of the fit."""
    name = fit.search.objective_name
    return (escaped(capital(name)), numbers.objective(fit.objective, name), addition)


def hits_fact(fit: Fit) -> Fact:
    """Return how many runs reached the best optimum."""
    search = fit.search
    made = ", ".join(counted(n, noun, words=False) for n, noun in named(search.n_starts, search.n_perturbations))
    return ("Runs at the best", f"{numbers.integer(search.n_hits)} of {numbers.integer(search.n_starts)}", made)


def likelihood_facts(fit: Memberships) -> tuple[Fact, ...]:
    """Return the five facts of a fit by its likelihood."""
    criterion = next(iter(fit.criteria.items()), None) if fit.regular else None
    if fit.run.selection is not None:
        criterion = (fit.run.selection.criterion, fit.run.selection.best.value)
    return (
        shape_fact(fit),
        objective_fact(fit, "" if fit.regular else "degenerate"),
        ("BIC", numbers.DASH, "")
        if criterion is None
        else (criterion[0].upper(), numbers.fixed(criterion[1], 2), "lower is better"),
        hits_fact(fit),
        ("Clear-cut rows", numbers.integer(fit.n_clear), "probability above 0.9"),
    )


def _of_rows(fit: Fit, n: int, parts: str, lede: str, told: tuple[Fact, ...], unit: str = "row") -> Header:
    """Return the top of a page on so many rows in parts."""
    name = fit.run.table_name
    stem = escaped(shortened(name.rsplit(".", 1)[0] or name, 60))
    window = f"{counted(n, unit, words=False)} of {name} in {parts}: {fit.card.title}"
    return Header(window, f"{capital(counted(n, unit))} of <i>{stem}</i> in {parts}", lede, told)


def _of_partition(partition: Partition, lede: str, told: tuple[Fact, ...]) -> Header:
    n = partition.n_rows - partition.n_lacking
    return _of_rows(partition, n, counted(partition.k, partition.part), lede, told)


def clustering_header(clustering: Clustering) -> Header:
    """Return title, lede and five facts of a clustering."""
    explained = clustering.variance_explained
    told = (
        shape_fact(clustering),
        objective_fact(clustering),
        ("Variance explained", numbers.DASH if math.isnan(explained) else numbers.percent(explained), ""),
        hits_fact(clustering),
        _fifth_fact(clustering),
    )
    return _of_partition(clustering, f"{_explained(clustering)} {_trust(clustering)}", told)


def _fifth_fact(clustering: Clustering) -> Fact:
    silhouettes = clustering.silhouettes
    if clustering.gap_to_bound is not None:
        return ("Gap to the bound", clustering.gap_text, "at most, proved")
    if silhouettes is not None:
        return ("Mean silhouette", numbers.fixed(silhouettes.mean, 2), "of 1 at most")
    return ("Spread", numbers.distance(clustering.spread), "root mean square")


def _explained(clustering: Clustering) -> str:
    share = clustering.variance_explained
    features = counted(clustering.n_features, "feature")
    if clustering.run.standardised:
        features = features.replace(" feature", " standardised feature")
    if math.isnan(share):
        return "The rows are all equal, so there is nothing for clusters to explain."
    if clustering.k == 1:
        return f"One cluster is the mean of all rows and explains none of the variance of {features}."
    return (
        f"{opening(clustering.k)} {clustering.parts} of {_sizes(clustering)} "
        f"explain {numbers.percent(share)} of the variance of {features}."
    )


def _sizes(clustering: Clustering) -> str:
    sizes = [int(n) for n in clustering.sizes]
    if len(sizes) <= MOST_SIZES_IN_LEDE and len(set(sizes)) > 1:
        return f"{listed([numbers.integer(n) for n in sizes])} rows"
    if len(set(sizes)) == 1:
        return f"{counted(sizes[0], 'row')} each"
    return f"{numbers.integer(min(sizes))} to {numbers.integer(max(sizes))} rows"


def _trust(clustering: Clustering) -> str:
    gap, search = clustering.gap_to_bound, clustering.search
    if gap is None:
        return search_words.agreement(search)
    if not search_words.excludes_much(search, gap):
        open_ = f"A proved bound leaves {clustering.gap_text} open: it excludes little."
        return f"{search_words.agreement(search)} {open_}"
    parts = counted(clustering.k, clustering.part)
    if gap == 0:
        claim = f"<strong>No other {parts} can be better</strong>"
    elif search_words.is_proved(search):
        claim = f"<strong>These {parts} are proved to be the best possible</strong>"
    else:
        claim = f"<strong>No other {parts} can be more than {clustering.gap_text} better</strong>"
    if search.n_starts == 1:
        return f"{claim}; one start was run to convergence."
    if search.n_perturbations:
        return f"{claim}. {search_words.of_perturbations(search)}."
    hits = f"{numbers.integer(search.n_hits)} of {numbers.integer(search.n_starts)} starts"
    return f"{claim}, and {hits} {verb(search.n_hits, 'agrees', 'agree')} on them."


def mixture_lede(mixture: Mixture) -> str:
    """State the weights, how clearly rows belong to components, and how reliable the fit is."""
    if not mixture.regular:
        return (
            f"<strong>This fit is degenerate</strong>: {escaped(mixture.why_degenerate)}. "
            "Its likelihood and criteria say nothing about the data."
        )
    return f"{_shares(mixture)} {search_words.agreement(mixture.search)}"


def mixture_header(mixture: Mixture) -> Header:
    """Return title, lede and five facts of a mixture."""
    return _of_partition(mixture, mixture_lede(mixture), likelihood_facts(mixture))


def _shares(mixture: Mixture) -> str:
    if mixture.k == 1:
        kind = "normal " if mixture.is_normal else ""
        return f"One {kind}{mixture.part} describes all rows on {counted(mixture.n_features, 'feature')}."
    if mixture.k <= MOST_WEIGHTS_IN_LEDE:
        shown = [numbers.percent(float(w), 0).removesuffix(f"{numbers.NARROW_SPACE}%") for w in mixture.weights]
        weights = f"of {listed(shown)}{numbers.NARROW_SPACE}% of the weight"
    else:
        weights = "share the rows"
    clear = f"{numbers.integer(mixture.n_clear)} of {numbers.integer(mixture.n_rows)} rows"
    belong = verb(mixture.n_clear, "belongs", "belong")
    who = f"{capital(counted(mixture.k, mixture.part))} {weights}"
    return f"{who}: {clear} {belong} to one with a probability above {CLEAR:.1f}."


def latent_class_analysis_header(classes: LatentClasses) -> Header:
    """Return title, lede and five facts of a latent class analysis; the lede names rows that are left out."""
    is_one = classes.k == 1 and classes.regular
    alone = "One class answers for all rows: the items are taken to be independent."
    texts = [alone if is_one else mixture_lede(classes)]
    if classes.lacks_covariate.any():
        texts.append("Rows that lack a covariate are assigned to classes by their items and the shares of all rows.")
    return _of_partition(classes, " ".join(texts), likelihood_facts(classes))


def classification_header(classification: Classification) -> Header:
    """Return title, lede and five facts of a classification."""
    unit, n = classification.unit, classification.n_classes
    correct, base = (numbers.percent(share) for share in (classification.accuracy, classification.base_rate))
    lede = f"Of the {unit}s of the fit {correct} are put into their own class."
    if n == 1:
        lede = f"There is one class, so every {unit} is put into it."
    told = (
        shape_fact(classification),
        ("Classes", numbers.integer(n), ""),
        ("Correct on the fit", correct, f"base rate {base}"),
        objective_fact(classification),
        hits_fact(classification),
    )
    lede += f" {search_words.agreement(classification.search)}"
    return _of_rows(classification, classification.n_units, counted(n, "class"), lede, told, unit)


def regression_header(regression: Regression) -> Header:
    """Return title, lede and five facts of a mixture of regressions."""
    run, d = regression.run, regression.n_features
    on = regression.feature(regression.main_feature) if d == 1 else counted(d, "feature")
    lines = counted(regression.k, f"{regression.response.title} regression".strip())
    return Header(
        f"{shortened(run.target_name, 60)} of {run.table_name}: mixture of {lines}",
        f"{column_name(run.target_name)} on {on}, a mixture of {escaped(lines)}",
        _regressions(regression),
        likelihood_facts(regression),
    )


def _regressions(regression: Regression) -> str:
    """State what the lines are like, and how reliable the fit is."""
    if not regression.regular:
        return (
            "<strong>This fit is degenerate</strong>: its likelihood and criteria say nothing about the data. "
            "The first section says why."
        )
    agreement = search_words.agreement(regression.search)
    if regression.k <= MOST_IN_LEDE and regression.has_lines:
        return f"{' '.join(_line(regression, j) for j in range(regression.k))} {agreement}"
    if regression.k == 1:
        return agreement
    shares = f"{numbers.percent(float(regression.weights.max()), 0)} of the weight lies on the first"
    parts = "lines" if regression.has_lines else "components"
    return f"{capital(in_prose(regression.k))} {parts} share the rows: {shares}. {agreement}"


def _line(regression: Regression, j: int) -> str:
    feature = regression.main_feature
    slope, noise = float(regression.lines.coef[j, feature]), _brief(float(regression.lines.scale[j]))
    per = f"per {'standard deviation' if regression.run.standardised else 'unit'} of {regression.feature(feature)}"
    along = per if regression.contrasts[feature] is None else regression.along(feature)
    moves = f"{'rises' if slope > 0 else 'falls'} by {_brief(abs(slope))} {along}"
    who = f"Component {j + 1} holds {numbers.percent(float(regression.weights[j]), 0)} of the weight and"
    return f"{'The line' if regression.k == 1 else who} {moves if slope else 'is flat'}, with noise of {noise}."


def _brief(value: float) -> str:
    """Format a number with two significant digits."""
    if value != 0 and not 1e-4 <= value < 1e6:
        return numbers.scientific(value, 2)
    return numbers.fixed(value, max(0, 1 - int(np.floor(np.log10(value)))) if value else 0)


def representation_header(representation: Representation) -> Header:
    """Return title, lede and five facts of a representation."""
    model, r2 = representation.model, representation.r2
    views = ("Views", numbers.integer(len(representation.views)), "")
    told = (
        shape_fact(representation),
        views if r2 is None else ("R\u00b2", numbers.fixed(r2, 3), "on the rows of the fit"),
        ("Components", numbers.integer(representation.rank), representation.of_how_many),
        objective_fact(representation, "mean per row" if model.method_ == "cd" else "penalised, mean per row"),
        hits_fact(representation),
    )
    parts = counted(representation.rank, "component")
    return _of_rows(representation, representation.n_rows, parts, _described(representation), told)


def _described(representation: Representation) -> str:
    """State what the representation joins, how reliable the fit is, and how much of a numeric target it explains."""
    n, rank, certificate = len(representation.views), representation.rank, representation.model.certificate_
    views = "one view" if n == 1 else f"{in_prose(n)} views"
    agreement = search_words.agreement(representation.search)
    if certificate.is_global:
        agreement = f"The fit is certified: with this penalty no harmonium is better{representation.proviso}."
    agreement += representation.not_linked
    if representation.r2 is not None:
        r2 = f"The R\u00b2 of {column_name(representation.run.target_name)} is {numbers.fixed(representation.r2, 3)}"
        agreement += f" {r2} on the rows of the fit; on new rows it is usually lower."
    if rank == 0:
        return f"With this penalty the columns of {views} are best taken to be independent. {agreement}"
    what = f"what {views}" if n > 1 and not certificate.unlinked else "what the columns"
    return (
        f"{opening(rank)} {verb(rank, 'component describes', 'components describe')} {what} have in common. {agreement}"
    )
