"""What a fitted harmonium says: features of a component, views behind it, and how far apart classes lie."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from majorant._numbers import counted
from majorant.models.harmonium.variables import rows_of_views

Array = NDArray[np.float64]


def components_in_words(model: Any) -> str:
    """How many components are used, of how many: "3 of at most 5 components", "16 components, grown from 5"."""
    if has_grown(model):
        return f"{counted(model.rank_, 'component')}, grown from {model.n_components}"
    return f"{model.rank_} of at most {counted(model.n_allowed_, 'component')}"


def has_grown(model: Any) -> bool:
    """Whether ``grow=True`` has led beyond the components that were asked for."""
    return bool(model.rank_ > model.n_components)


def too_large_a_penalty(model: Any) -> str:
    """That the penalty was the smallest of those tried, while the held-out loss was falling; "" where it was not."""
    penalties = model.l2_path_[:, 0]
    if len(penalties) < 2 or model.l2_ != penalties[-1]:
        return ""
    said = "The penalty is the smallest that was tried, and the held-out loss was falling: a smaller one may be better."
    if getattr(model, "select_by", None) is not None:  # which takes no penalty of one's own
        return said
    return f"{said} Set l2 to {float(penalties[-1]) / 2:.3g} or less to see."


def objective_in_words(model: Any) -> str:
    """What the log-loss of a fit is, and what it cannot be compared with; "" where something else was minimised."""
    if model.method_ == "cd":
        return ""
    target = ", plus the loss of the target" if hasattr(model, "label_components_") else ""
    return (
        f"Log-loss: that of every variable given the others{target}, and the penalty, in nats a row. "
        "The held-out losses of penalties that are compared have no penalty in them: the two cannot be compared."
    )


def held_out_loss_in_words(model: Any) -> str:
    """What penalties were compared by, as the head of a column."""
    told = getattr(model, "select_by", None)
    return "Held-out loss" if told is None else f"Held-out loss of {told} given the other views"


def view_penalty_in_words(model: Any) -> str:
    """What the weights of the view that is to be told count for in the penalty; "" where no view is."""
    told = getattr(model, "select_by", None)
    if told is None:
        return ""
    factor = next(view.penalty for view in model.views_ if view.name == told)
    tried = ", ".join(f"{tried:g} ({loss:.4g})" for tried, loss in model.penalty_path_.tolist())
    compared = f"; tried (and held-out loss): {tried}" if tried else ""
    return f"Weights of {told} count {factor:g} times in the penalty, those of other views once{compared}."


def top_features(model: Any, view: str, most: int) -> list[list[str]]:
    """The columns (or levels) of a view with the largest weights in each component, with their signs.

    Also its pairs of neighbours that are on together, joined by a tilde: of a chain a word with itself.
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
    r"""How much each view says of each component.

    Parameters
    ----------
    model : Harmonium, HarmoniumClassifier or HarmoniumRegressor
        Fitted.

    Returns
    -------
    ndarray of shape (n_views, n_components)
        :math:`\sum_i v_i W_{ik}^2` over the variables of a view, v their variances (1 of standardised columns): the
        variance of its part of :math:`E[h_k]`, were its variables uncorrelated.

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


def class_profiles(latents: Array, y: Any) -> tuple[NDArray[Any], Array]:
    """The mean representation of each class.

    Parameters
    ----------
    latents : ndarray of shape (n_samples, n_components)
        From ``transform``.
    y : array-like of shape (n_samples,)

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted.
    profiles : ndarray of shape (n_classes, n_components)

    Raises
    ------
    ValueError
        If y has not one label a row.
    """
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if codes.shape != np.shape(latents)[:1]:
        raise ValueError(f"y must have a label for each of {len(latents)} rows; got shape {np.shape(y)}")
    return classes, _means(np.asarray(latents), codes, len(classes))


def mean_pairwise_kl(latents: Array, y: Any) -> float:
    r"""How far apart classes lie in a representation: the average divergence of their distributions over components.

    Each row's latents are made a distribution over components by softmax; these are averaged within each class, and
    :math:`(KL(p, q) + KL(q, p)) / 2` is averaged over all pairs of classes [1]_.

    Parameters
    ----------
    latents : ndarray of shape (n_samples, n_components)
        From ``transform``, of any model.
    y : array-like of shape (n_samples,)

    Returns
    -------
    float
        In nats; 0 for one class.

    References
    ----------
    .. [1] N. Chen, J. Zhu, F. Sun, E. Xing, "Large-margin predictive latent subspace learning for multiview data
       analysis", IEEE TPAMI, 2012, section 6.2.

    Examples
    --------
    >>> import numpy as np
    >>> round(mean_pairwise_kl(np.log([[0.9, 0.1], [0.1, 0.9]]), ["a", "b"]), 3)
    1.758
    """
    p = class_profiles(softmax(np.asarray(latents, dtype=np.float64), axis=1), y)[1]
    n = len(p)
    if n < 2:
        return 0.0
    p = np.maximum(p, np.finfo(float).tiny)
    cross = np.einsum("ck,dk->cd", p, np.log(p))
    own = np.diag(cross)
    return float((own[:, None] - cross).sum() / (n * (n - 1)))


def _means(values: Array, codes: NDArray[np.intp], n: int) -> Array:
    sums = np.zeros((n, values.shape[1]))
    np.add.at(sums, codes, values)
    return np.asarray(sums / np.bincount(codes, minlength=n)[:, None])
