"""What a fitted harmonium says on one page."""

from __future__ import annotations

from typing import Any

from majorant.models.harmonium.reading import too_large_a_penalty, top_features, view_weights
from majorant.summary import Block, Column, Fact, Facts, Summary, Table, counted, search_block

MOST_COMPONENTS = 20
MOST_FEATURES = 3
SIGNS = "Correlated columns may have opposite signs in a component: read them together, not sign by sign."


def harmonium_summary(model: Any) -> Summary:
    """Search report, fit, views, and each component by the columns that speak most for it."""
    facts = Facts(
        "fit",
        [
            Fact(model.search_.objective_name, model.objective_, 5),
            Fact("l2", model.l2_, 4),
            Fact("largest l2", model.largest_l2_, 4),
        ],
        [Fact("rows", model.n_samples_), Fact("components", model.rank_), Fact("allowed", model.n_allowed_)],
    )
    blocks = [
        search_block(model.search_),
        Block("FIT", f"L-BFGS, {counted(model.n_iter_, 'iteration')}", [facts]),
        Block("VIEWS", "", [_views(model)]),
        Block("COMPONENTS", "", _components(model)),
        *([Block("WEIGHTS", "", _weights(model))] if len(model.views_) > 1 and model.rank_ else []),
    ]
    title = f"harmonium, {counted(len(model.views_), 'view')}, {counted(model.rank_, 'component')}"
    shape = f"{counted(model.n_samples_, 'row')}, {counted(model.n_features_in_, 'feature')}"
    return Summary(title, shape, blocks, [sentence for sentence in [too_large_a_penalty(model)] if sentence])


def _views(model: Any) -> Table:
    rows = [
        (view.name, _kind(view), str(len(view.names)), str(view.width), "yes" if view.whitener is not None else "no")
        for view in model.views_
    ]
    return Table("views", [Column(c) for c in ("view", "kind", "columns", "variables", "whitened")], rows)


def _kind(view: Any) -> str:
    """A view's kind, with its couplings where it has some."""
    if view.kind != "bernoulli" or view.structure is None:
        return str(view.kind)
    return f"bernoulli, {counted(len(view.structure.edges), 'edge')}"


def _weights(model: Any) -> list[Table | str]:
    """What part of each component each view has."""
    weights = view_weights(model)[:, : min(model.rank_, MOST_COMPONENTS)]
    shares = weights / weights.sum(axis=0)
    columns = [Column("component"), *(Column(view.name) for view in model.views_)]
    rows = [(str(k + 1), *(f"{100 * share:.0f} %" for share in of_one)) for k, of_one in enumerate(shares.T)]
    return [Table("weights", columns, rows), "Shares of views in each component, by their squared weights."]


def _components(model: Any) -> list[Table | str]:
    if model.rank_ == 0:
        return ["No component: with this penalty the columns are best taken to be independent."]
    shown = min(model.rank_, MOST_COMPONENTS)
    columns = [Column("component"), *(Column(view.name, lists=True) for view in model.views_)]
    tops = [top_features(model, view.name, MOST_FEATURES) for view in model.views_]
    rows = [(str(k + 1), *(", ".join(top[k]) for top in tops)) for k in range(shown)]
    content: list[Table | str] = [Table("components", columns, rows)]
    content.append(SIGNS)
    if model.rank_ > shown:
        content.append(f"{model.rank_ - shown} more components.")
    return content
