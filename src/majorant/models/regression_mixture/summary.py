"""The summary of a fitted mixture of regressions."""

from __future__ import annotations

from typing import Any

import numpy as np

from majorant.models.mixture_summary import few_rows_sentence
from majorant.models.regression_mixture.extras import shared_columns
from majorant.models.regression_mixture.words import reservations, what_would_admit, why_no_errors
from majorant.summary import Block, Column, Fact, Facts, Summary, Table, counted, search_block

MOST_FEATURES = 20


def regression_summary(model: Any) -> Summary:
    """Search report, criteria, the lines, excluded solutions."""
    k, d = model.coef_.shape
    q = model.responsibilities_
    n = model.n_samples_fit_ if q is None else len(q)
    formula = getattr(model, "formula_", None)
    features = model._in_words(model._feature_names())
    left, right = [Fact("log-likelihood", model.log_likelihood_, 3)], []
    if model.regular_:  # a collapse has any likelihood
        left += [Fact("BIC", model.bic_, 2), Fact("ICL", model.icl_, 2)]
        right += [Fact("AIC", model.aic_, 2)]
    right += [Fact("parameters", model.n_parameters_), Fact("rows", model.n_rows_, 0)]
    criteria = Facts("fit", left, right)
    has_noise = model._response.has_dispersion
    lines = Table(
        "components",
        [
            Column("component", range(1, k + 1)),
            Column("weight", model.weights_, 3),
            *([Column("noise", model.scale_, 4)] if has_noise else []),
            *_linear(model, model.intercept_, model._feature_names(), model.coef_),
        ],
    )
    if q is None:
        note = "The rows were streamed: predict_proba gives each row's component probabilities."
    else:
        certain = int(np.count_nonzero(q.max(axis=1) > 0.9))
        belong = "belongs" if certain == 1 else "belong"
        note = f"{counted(certain, 'row')} of {n} {belong} to one component with probability above 0.9."
    blocks = [
        search_block(model.search_),
        Block("FIT", f"reached in {counted(model.n_iter_, 'iteration')}", (criteria,)),
        Block("COMPONENTS", "" if model.regular_ else "not a regular solution", (lines, note)),
        *_gating(model),
        Block("INTERVALS", "95 %, from the observed information", _intervals(model, features)),
    ]
    look_out = [text for text in (model.degeneracy_, model.separated_) if text]
    look_out += [] if model.excluded_ is None else [what_would_admit(model.excluded_, model.max_sigma_ratio)]
    look_out += filter(None, [few_rows_sentence(model, _n_own(model, model._feature_names()))])
    family = "" if model._response.has_normal_noise else f"{model._response.name}, "
    groups = "" if model.groups_ is None else f" in {counted(len(model.groups_), 'group')}"
    weight = "" if np.isclose(model.n_rows_, n, rtol=1e-9) else f" of weight {model.n_rows_:.6g}"
    return Summary(
        f"mixture of regressions, {family}{counted(k, 'component')}",
        f"{'' if formula is None else f'{formula.text}: '}{counted(n, 'row')}{weight}{groups}, {counted(d, 'feature')}",
        blocks,
        look_out,
    )


def _n_own(model: Any, features: list[str]) -> int:
    """Return the number of parameters of each component alone: weight or gate, coefficients, noise."""
    shared = shared_columns(model.shared or (), features, fit_intercept=model.fit_intercept)
    has_noise = model._response.has_dispersion and model.variance != "common"
    own = len(features) + int(model.fit_intercept) - len(shared) + int(has_noise)
    return own + 1 + int(model.gating_coef_.shape[1])


def _linear(model: Any, intercept: Any, names: list[str], coef: Any) -> list[Column]:
    """Return columns of intercepts and coefficients; data frames have the names of the design."""
    heads = zip(model._in_words(names), coef.T, names, strict=True)
    return [Column("intercept", intercept, 4), *(Column(head, own, 4, name) for head, own, name in heads)]


def _gating(model: Any) -> list[Block]:
    """Return the block on gating covariates, if the weights depend on any."""
    names = gating_names(model)
    if not names:
        return []
    numbers = Column("component", range(1, len(model.weights_) + 1))
    linear = _linear(model, model.gating_intercept_, names, model.gating_coef_)
    table = Table("gating", [numbers, *linear])
    told = "Weights depend on these columns: logarithms of the odds against component 1."
    return [Block("GATING", "", (table, told))]


def gating_names(model: Any) -> list[str]:
    """Return the names of the gating columns."""
    names = model.gating_names_in_
    return [str(i + 1) for i in range(model.gating_coef_.shape[1])] if names is None else list(names)


def _intervals(model: Any, features: list[str]) -> tuple[Table | str, ...]:
    found = model._intervals()
    if not found:
        reason = why_no_errors(model)
        return (f"{reason[0].upper()}{reason[1:]}.",)
    rows = []
    names: list[tuple[str, str, int | None]] = [("weight", "weights", None)]
    names += [("noise", "scale", None)] * model._response.has_dispersion
    names += [("intercept", "intercept", None)] * bool(model.fit_intercept)
    names += [(feature, "coef", j) for j, feature in enumerate(features[:MOST_FEATURES])]
    gates = gating_names(model)
    names += [("gating intercept", "gating_intercept", None)] * bool(gates)
    names += [(f"gating {name}", "gating_coef", j) for j, name in enumerate(model._in_words(gates))]
    for title, name, j in names:
        low, high = found[name]
        values, errors = getattr(model, f"{name}_"), model.standard_errors_[name]
        for k in range(int(name.startswith("gating")), len(model.weights_)):
            at = k if j is None else (k, j)
            rows.append((title, k + 1, float(values[at]), float(errors[at]), float(low[at]), float(high[at])))
    titles, components, *numbers = zip(*rows, strict=True)
    columns = [Column("parameter", titles), Column("component", components)]
    columns += [Column(h, own, 4) for h, own in zip(("estimate", "error", "low", "high"), numbers, strict=True)]
    content: tuple[Table | str, ...] = (Table("intervals", columns), *reservations(model))
    if len(features) > MOST_FEATURES:
        content += (f"Of the first {MOST_FEATURES} features; standard_errors() has all.",)
    return content
