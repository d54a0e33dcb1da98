"""The report of each kind of model: a new kind is one more entry of the table at the end.

Every model is of one kind. Sections of its own are named on its card: `majorant.registry.ModelCard.sections`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from majorant.registry import ModelCard
from majorant.report import numbers
from majorant.report.fit import Fit
from majorant.report.html import escaped
from majorant.report.measures.classification import Classification, measure_classification
from majorant.report.measures.clustering import Clustering, measure_clustering
from majorant.report.measures.latent_class_analysis import LatentClasses, measure_latent_classes
from majorant.report.measures.memberships import Memberships
from majorant.report.measures.mixture import Mixture, measure_mixture
from majorant.report.measures.regression import Regression, measure_regression
from majorant.report.measures.representation import Representation, measure_representation
from majorant.report.run import Run
from majorant.report.section import Header, Section
from majorant.report.sections.certificate import certificate_section
from majorant.report.sections.class_fit import (
    assignment_section,
    bivariate_section,
    class_fit_section,
    classification_section,
)
from majorant.report.sections.class_profile import (
    class_profile_section,
    class_sizes_section,
    effects_section,
    populations_section,
)
from majorant.report.sections.classes import classes_section
from majorant.report.sections.clusters import clusters_section
from majorant.report.sections.columns import columns_section
from majorant.report.sections.components import components_section
from majorant.report.sections.confusion import confusion_section
from majorant.report.sections.convergence import convergence_section
from majorant.report.sections.criteria import criteria_section
from majorant.report.sections.discriminants import map_section
from majorant.report.sections.effects import effects_of_features_section, separation_section
from majorant.report.sections.embedding import embedding_section, neighbours_section
from majorant.report.sections.estimates import estimates_section, mixture_estimates_section
from majorant.report.sections.latent_classes import latent_classes_section
from majorant.report.sections.later_steps import correlations_section, invariance_section, outcomes_section
from majorant.report.sections.left_out import left_out_section
from majorant.report.sections.lines import fit_section
from majorant.report.sections.optima import optima_section
from majorant.report.sections.pair import pair_section
from majorant.report.sections.probabilities import probabilities_section
from majorant.report.sections.profiles import profiles_section
from majorant.report.sections.regularity import regularity_section
from majorant.report.sections.representation import (
    class_profiles_section,
    optimality_section,
    topics_section,
    views_section,
)
from majorant.report.sections.reproduce import reproduce_section
from majorant.report.sections.residuals import quantiles_section, residuals_section
from majorant.report.sections.search import search_section
from majorant.report.sections.silhouettes import silhouettes_section
from majorant.report.sections.strip import strip_section
from majorant.report.sections.uncertainty import uncertainty_section
from majorant.report.words import classification as classification_words
from majorant.report.words import clustering as clustering_words
from majorant.report.words import latent_class_analysis as respondent_words
from majorant.report.words import mixture as mixture_words
from majorant.report.words import partition as partition_words
from majorant.report.words import regression as regression_words
from majorant.report.words import representation as representation_words
from majorant.report.words.grammar import capital, counted
from majorant.search.record import SearchReport, named

Measured = TypeVar("Measured", bound=Fit)


@dataclass(frozen=True)
class Kind(Generic[Measured]):
    """Parts of the report of one kind of model.

    Attributes
    ----------
    measure : callable
        Computes the numbers of a run.
    header : callable
        Builds the top of the page.
    sections : tuple of callable
        Builders in the order of the page, before those of the model and `LAST`; sections that are None are left out.
    """

    measure: Callable[[Run, ModelCard], Measured]
    header: Callable[[Measured], Header]
    sections: tuple[Callable[[Measured], Section | None], ...]


def clustering_header(clustering: Clustering) -> Header:
    """Return title, lede and five facts of a clustering."""
    search = clustering.search
    explained = clustering.variance_explained
    facts = (
        _shape(clustering),
        (
            escaped(capital(search.objective_name)),
            numbers.objective(clustering.objective, search.objective_name),
            "",
        ),
        ("Variance explained", numbers.DASH if math.isnan(explained) else numbers.percent(explained), ""),
        _hits(search),
        _fifth_fact(clustering),
    )
    return Header(
        partition_words.plain_title(clustering),
        partition_words.title(clustering),
        clustering_words.lede(clustering),
        facts,
    )


def _shape(fit: Fit) -> tuple[str, str, str]:
    shape = f"{numbers.integer(fit.n_rows - fit.n_lacking)}\u00a0{numbers.TIMES}\u00a0{numbers.integer(fit.n_features)}"
    return ("Rows \u00d7 features", shape, "standardised" if fit.run.standardised else "")


def _hits(search: SearchReport) -> tuple[str, str, str]:
    made = ", ".join(counted(n, noun, words=False) for n, noun in named(search.n_starts, search.n_perturbations))
    return ("Runs at the best", f"{numbers.integer(search.n_hits)} of {numbers.integer(search.n_starts)}", made)


def _fifth_fact(clustering: Clustering) -> tuple[str, str, str]:
    gap, silhouettes = clustering.gap_to_bound, clustering.silhouettes
    if gap is not None:
        return ("Gap to the bound", numbers.percent_at_most(gap), "at most, proved")
    if silhouettes is not None:
        return ("Mean silhouette", numbers.fixed(silhouettes.mean, 2), "of 1 at most")
    return ("Spread", numbers.distance(clustering.spread), "root mean square")


def mixture_header(mixture: Mixture) -> Header:
    """Return title, lede and five facts of a mixture."""
    return Header(
        partition_words.plain_title(mixture),
        partition_words.title(mixture),
        mixture_words.lede(mixture),
        _likelihood_facts(mixture),
    )


def respondents_header(classes: LatentClasses) -> Header:
    """Return title, lede and five facts of a latent class analysis."""
    return Header(
        partition_words.plain_title(classes),
        partition_words.title(classes),
        respondent_words.lede(classes),
        _likelihood_facts(classes),
    )


def regression_header(regression: Regression) -> Header:
    """Return title, lede and five facts of a mixture of regressions."""
    return Header(
        regression_words.plain_title(regression),
        regression_words.title(regression),
        regression_words.lede(regression),
        _likelihood_facts(regression),
    )


def _likelihood_facts(fit: Memberships) -> tuple[tuple[str, str, str], ...]:
    name = fit.card.objective_name
    criterion = next(iter(fit.criteria.items()), None) if fit.regular else None
    if fit.run.selection is not None:
        criterion = (fit.run.selection.criterion, fit.run.selection.best.value)
    return (
        _shape(fit),
        (escaped(name.capitalize()), numbers.objective(fit.objective, name), "" if fit.regular else "degenerate"),
        ("BIC", numbers.DASH, "")
        if criterion is None
        else (criterion[0].upper(), numbers.fixed(criterion[1], 2), "lower is better"),
        _hits(fit.search),
        ("Clear-cut rows", numbers.integer(fit.n_clear), "probability above 0.9"),
    )


def classification_header(classification: Classification) -> Header:
    """Return title, lede and five facts of a classification."""
    facts = (
        _shape(classification),
        ("Classes", numbers.integer(classification.n_classes), ""),
        (
            "Correct on the fit",
            numbers.percent(classification.accuracy),
            f"base rate {numbers.percent(classification.base_rate)}",
        ),
        (
            escaped(classification.search.objective_name).capitalize(),
            numbers.objective(classification.objective, classification.search.objective_name),
            "",
        ),
        _hits(classification.search),
    )
    return Header(
        classification_words.plain_title(classification),
        classification_words.title(classification),
        classification_words.lede(classification),
        facts,
    )


def representation_header(representation: Representation) -> Header:
    """Return title, lede and five facts of a representation."""
    name = representation.search.objective_name
    views = ("Views", numbers.integer(len(representation.views)), "")
    explained = representation.r2
    unit = "mean per row" if representation.model.method_ == "cd" else "penalised, mean per row"
    facts = (
        _shape(representation),
        views if explained is None else ("R\u00b2", numbers.fixed(explained, 3), "on the rows of the fit"),
        ("Components", numbers.integer(representation.rank), representation_words.of_how_many(representation)),
        (escaped(name).capitalize(), numbers.objective(representation.objective, name), unit),
        _hits(representation.search),
    )
    return Header(
        representation_words.plain_title(representation),
        representation_words.title(representation),
        representation_words.lede(representation),
        facts,
    )


LAST = (search_section, certificate_section, convergence_section, columns_section, reproduce_section)
"""Sections at the end of every page: how the answer was found."""

KINDS: dict[str, Kind[Any]] = {
    "classification": Kind(
        measure_classification,
        classification_header,
        (
            latent_classes_section,
            confusion_section,
            classes_section,
            probabilities_section,
            topics_section,
            views_section,
            class_profiles_section,
            embedding_section,
            neighbours_section,
            optimality_section,
        ),
    ),
    "clustering": Kind(
        measure_clustering,
        clustering_header,
        (
            clusters_section,
            profiles_section,
            map_section,
            pair_section,
            strip_section,
            silhouettes_section,
            criteria_section,
        ),
    ),
    "mixture": Kind(
        measure_mixture,
        mixture_header,
        (
            regularity_section,
            components_section,
            profiles_section,
            map_section,
            pair_section,
            strip_section,
            uncertainty_section,
            mixture_estimates_section,
            criteria_section,
        ),
    ),
    "latent class analysis": Kind(
        measure_latent_classes,
        respondents_header,
        (
            regularity_section,
            class_sizes_section,
            populations_section,
            invariance_section,
            class_profile_section,
            correlations_section,
            effects_section,
            outcomes_section,
            uncertainty_section,
            class_fit_section,
            bivariate_section,
            assignment_section,
            classification_section,
            mixture_estimates_section,
            criteria_section,
        ),
    ),
    "representation": Kind(
        measure_representation,
        representation_header,
        (
            topics_section,
            views_section,
            embedding_section,
            neighbours_section,
            optimality_section,
        ),
    ),
    "regression": Kind(
        measure_regression,
        regression_header,
        (
            left_out_section,
            estimates_section,
            fit_section,
            effects_of_features_section,
            residuals_section,
            quantiles_section,
            separation_section,
            criteria_section,
            optima_section,
        ),
    ),
}
