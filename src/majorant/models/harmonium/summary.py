"""What a fit of a harmonium says: its summary, and sentences about its penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._numbers import counted
from majorant.models.harmonium.layout import rows_of_views
from majorant.models.harmonium.search import VIEW_PENALTIES
from majorant.models.harmonium.views import MOST_COLUMNS, ROWS_PER_COLUMN
from majorant.solvers.logistic import PENALTIES
from majorant.summary import Block, Column, Fact, Facts, Summary, Table, search_block

Array = NDArray[np.float64]

MOST_COMPONENTS, MOST_FEATURES = 20, 3
"""Components, and features of each, that a summary shows."""
SIGNS = "Correlated columns may have opposite signs in a component: read them together, not sign by sign."


def components_in_words(model: Any) -> str:
    """Return the number of components used: "3 of at most 5 components", "16 components, grown from 5"."""
    if has_grown(model):
        return f"{counted(model.rank_, 'component')}, grown from {model.n_components}"
    return f"{model.rank_} of at most {counted(model.n_allowed_, 'component')}"


def has_grown(model: Any) -> bool:
    """Return whether ``grow=True`` added components beyond `n_components`."""
    return bool(model.rank_ > model.n_components)


def penalty_at_an_end(model: Any) -> str:
    """Return what it means that the penalty is the largest or the smallest of those that were compared; or ""."""
    penalties, losses = model.l2_path_.T
    if len(penalties) < 2:
        return ""
    if model.l2_ == penalties[0]:
        few = "" if losses.argmin() == 0 else ", as far as so few rows can tell"
        return (
            f"No component helps to predict rows that were held out{few}: their loss is {losses[0]:.5g} without any, "
            f"and {losses[1:].min():.5g} at the best penalty that leaves some."
        )
    if model.l2_ != penalties[-1]:
        return ""
    said = "The penalty is the smallest that was tried, and the held-out loss was falling: a smaller one may be better."
    if getattr(model, "select_by", None) is not None:  # which takes no penalty of one's own
        return said
    return f"{said} Set l2 to {float(penalties[-1]) / 2:.3g} or less to see."


def other_choices_at_an_end(model: Any) -> list[str]:
    """Return what it means that another choice of the fit is the largest or the smallest of those compared."""
    said = []
    weights = getattr(model, "loss_weight_path_", np.zeros((0, 2)))[:, 0]
    if len(weights) > 1 and model.loss_weight_ == weights[0]:
        said.append(
            f"The weight of the loss, {weights[0]:g}, is the largest that was tried: no smaller one lowers the "
            "held-out loss by more than 3 %, and larger ones hardly change a fit."
        )
    elif len(weights) > 1 and model.loss_weight_ == weights[-1]:
        said.append(
            f"The weight of the loss, {weights[-1]:g}, is the smallest that was tried, and the held-out loss was "
            "falling: a smaller one may be better."
        )
        if model.method_ != "cd" or getattr(model, "loss", "") != "log":  # which take no weight below one
            said[-1] += f" Set loss_weight to {weights[-1] / 10:g} to see."
    factors = model.penalty_path_[:, 0]
    if len(factors) > 1 and view_penalty(model) == VIEW_PENALTIES[-1]:
        said.append(
            f"The factor of {model.select_by} in the penalty, {factors[-1]:g}, is the largest that was tried, and the "
            "held-out loss was falling: a larger one may be better."
        )
    elif len(factors) > 1 and view_penalty(model) == factors[0]:
        said.append(f"The factor of {model.select_by} in the penalty is one: larger ones are no better.")
    for name, chosen in getattr(model, "readout_l2_", {}).items():
        if chosen in (PENALTIES[0], PENALTIES[-1]):
            end = "largest" if chosen == PENALTIES[0] else "smallest"
            said.append(
                f"The calibration of {name} has the {end} penalty that is compared by default, {chosen:g}: "
                f"calibrate(X, l2=...) takes a {'larger' if chosen == PENALTIES[0] else 'smaller'} one."
            )
    return said


def not_whitened(model: Any) -> list[str]:
    """Return a sentence for each view that is not whitened by default, though there are others: why not."""
    numbers = [view for view in model.views_ if view.kind == "gaussian"]
    few = f"fewer than {ROWS_PER_COLUMN} distinct rows a column, too few to tell how columns depend on each other"
    wide = f"more than {MOST_COLUMNS} columns"
    return [
        f"View {view.name!r} is not whitened: it has {few if view.width <= MOST_COLUMNS else wide}."
        for view in numbers
        if len(numbers) > 1 and view.width and view.whitener is None and isinstance(view.given.whiten, str)
    ]


def objective_in_words(model: Any) -> str:
    """Return the definition of the log-loss of a fit; "" for contrastive divergence."""
    if model.method_ == "cd":
        return ""
    target = ", plus the loss of the target" if hasattr(model, "label_components_") else ""
    return (
        f"Log-loss: that of every variable given the others{target}, and the penalty, as a mean per row. "
        "The held-out losses of penalties that are compared have no penalty in them: the two cannot be compared."
    )


def held_out_loss_in_words(model: Any) -> str:
    """Return the column head of the loss that penalties were compared by."""
    told = getattr(model, "select_by", None)
    return "Held-out loss" if told is None else f"Held-out loss of {told} given the other views"


def view_penalty(model: Any) -> float:
    """Return the factor of the view of `select_by` in the penalty."""
    return next(float(view.penalty) for view in model.views_ if view.name == model.select_by)


def view_penalty_in_words(model: Any) -> str:
    """Return the factor of the selected view in the penalty; "" without `select_by`."""
    told = getattr(model, "select_by", None)
    if told is None:
        return ""
    factor = view_penalty(model)
    tried = ", ".join(f"{tried:g} ({loss:.4g})" for tried, loss in model.penalty_path_.tolist())
    compared = f"; tried (and held-out loss): {tried}" if tried else ""
    return f"Weights of {told} count {factor:g} times in the penalty, those of other views once{compared}."


def top_features(model: Any, view: str, most: int) -> list[list[str]]:
    """List the columns (or levels) of a view with the largest weights in each component, with their signs.

    Couplings are pairs of names joined by a tilde, for a chain a word with itself.
    """
    weights = model.loadings(view)
    fitted = next(v for v in model.views_ if v.name == view)
    names = fitted.names
    if fitted.kind == "categorical":
        names = [
            f"{name}={level}" for name, levels in zip(names, fitted.levels, strict=True) for level in levels.tolist()
        ]
    if fitted.structure is not None:
        weights = np.concatenate([weights, model.coupling_loadings(view)])
        names = [*names, *(f"{names[i]}~{names[j]}" for i, j in fitted.couplings.tolist())]
    found = []
    for k in range(weights.shape[1]):
        order = np.argsort(-np.abs(weights[:, k]), kind="stable")[:most]
        found.append([f"{'+' if weights[j, k] > 0 else '-'}{names[j]}" for j in order if weights[j, k] != 0])
    return found


def view_weights(model: Any) -> Array:
    r"""Compute the weight of each view in each component.

    Parameters
    ----------
    model : Harmonium, HarmoniumClassifier or HarmoniumRegressor
        Fitted.

    Returns
    -------
    ndarray of shape (n_views, n_components)
        :math:`\sum_i v_i W_{ik}^2` over the variables of a view, v their variances (1 for standardised columns): the
        variance of its part of :math:`E[h_k]` if its variables are uncorrelated.

    Examples
    --------
    >>> import numpy as np
    >>> import majorant as mj
    >>> g = np.random.default_rng(0)
    >>> h = g.normal(size=(200, 1))
    >>> X = {"near": h + 0.5 * g.normal(size=(200, 3)), "far": h + 3 * g.normal(size=(200, 3))}
    >>> views = {"near": mj.Gaussian(whiten=False), "far": mj.Gaussian(whiten=False)}
    >>> model = mj.Harmonium(2, views=views, l2=0.1).fit(X)
    >>> near, far = view_weights(model)[:, 0]
    >>> bool(near > 10 * far)
    True
    """
    places = rows_of_views(model.views_)
    sizes = [np.einsum("ki,i->k", model.components_[:, places[v.name]] ** 2, v.spread**2) for v in model.views_]
    return np.array(sizes)


def harmonium_summary(model: Any) -> Summary:
    """Summarise a fit: search report, fit, views, and the columns with the largest weights in each component."""
    response = model.supervision_.penalty
    l2 = [Fact("l2", model.l2_, 4)]
    if response != 1:
        l2 = [Fact("l2 of views", model.l2_, 4), Fact("l2 of the response", response * model.l2_, 4)]
    facts = Facts(
        "fit",
        [
            Fact(model.search_.objective_name, model.objective_, 5),
            *l2,
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
    said = [penalty_at_an_end(model), *other_choices_at_an_end(model), *not_whitened(model)]
    return Summary(title, shape, blocks, [sentence for sentence in said if sentence])


def _views(model: Any) -> Table:
    columns = [
        Column("view", [view.name for view in model.views_]),
        Column("kind", list(map(_kind, model.views_))),
        Column("columns", [str(len(view.names)) for view in model.views_]),
        Column("variables", [str(view.width) for view in model.views_]),
        Column("whitened", ["no" if view.whitener is None else "yes" for view in model.views_]),
    ]
    return Table("views", columns)


def _kind(view: Any) -> str:
    """Return the kind of a view, with the number of its edges."""
    if view.kind != "bernoulli" or view.structure is None:
        return str(view.kind)
    return f"bernoulli, {counted(len(view.structure.edges), 'edge')}"


def _weights(model: Any) -> list[Table | str]:
    """Return the shares of views in each component."""
    weights = view_weights(model)[:, : min(model.rank_, MOST_COMPONENTS)]
    shares = weights / weights.sum(axis=0)
    columns = [Column("component", [str(k + 1) for k in range(shares.shape[1])])]
    for view, own in zip(model.views_, shares, strict=True):
        columns.append(Column(view.name, [f"{100 * share:.0f} %" for share in own]))
    return [Table("weights", columns), "Shares of views in each component, by their squared weights."]


def _components(model: Any) -> list[Table | str]:
    if model.rank_ == 0:
        return ["No component: with this penalty the columns are best taken to be independent."]
    shown = min(model.rank_, MOST_COMPONENTS)
    columns = [Column("component", [str(k + 1) for k in range(shown)])]
    for view in model.views_:
        top = top_features(model, view.name, MOST_FEATURES)[:shown]
        columns.append(Column(view.name, list(map(", ".join, top)), lists=True))
    content: list[Table | str] = [Table("components", columns), SIGNS]
    if model.rank_ > shown:
        content.append(f"{model.rank_ - shown} more components.")
    return content
