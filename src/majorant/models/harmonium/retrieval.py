"""Retrieval: which rows of a gallery are most like a query, whatever views either shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant._validation import check_integer

Array = NDArray[np.float64]

PAIRS = 4_000_000
"""Similarities that are held at a time."""
NOTHING = 1e-9
"""Representations no larger than this, in units of the latents' own deviation, are zero but for rounding."""
TIES = 12
"""Decimals beyond which similarities are the same: they differ by rounding."""


class RetrievalMixin:
    """`retrieve` for models that have `transform`."""

    def retrieve(self, queries: Any, gallery: Any, n: int | None = None) -> tuple[NDArray[np.intp], Array]:
        """The rows of a gallery whose representations are most like those of queries, by cosine similarity.

        Both may lack views, and need not show the same ones: texts are found for pictures and pictures for texts.

        Parameters
        ----------
        queries, gallery : array-like of shape (n_samples, n_features), or dict of arrays
            See `transform`.
        n : int, optional
            Rows that are told for each query; by default ten, or all of a smaller gallery.

        Returns
        -------
        indices : ndarray of shape (n_queries, n)
            Rows of the gallery, the most similar first; of equally similar ones (to 12 decimals) the first rows first.
        similarities : ndarray of shape (n_queries, n)
            Between -1 and 1; 0 where a representation is zero, as of a row that lacks every view.

        Raises
        ------
        ValueError
            If n is larger than the gallery.

        See Also
        --------
        majorant.metrics : How good such rankings are.

        Examples
        --------
        >>> import numpy as np
        >>> import majorant as mj
        >>> g = np.random.default_rng(0)
        >>> h = g.normal(size=(200, 2))
        >>> X = {"tags": (h @ g.normal(size=(2, 9)) > 0).astype(float), "sizes": h + 0.1 * g.normal(size=(200, 2))}
        >>> model = mj.Harmonium(3, views={"tags": mj.Bernoulli(), "sizes": mj.Gaussian()}).fit(X)
        >>> rows, similarities = model.retrieve({"tags": X["tags"][:3]}, {"sizes": X["sizes"]}, n=5)
        >>> rows.shape, bool((similarities > 0.9).all())
        ((3, 5), True)
        """
        if n is not None:
            check_integer("n", n, low=1)
        wanted, there = self.transform(queries), self.transform(gallery)  # type: ignore[attr-defined]
        n = min(10, len(there)) if n is None else n
        if n > len(there):
            raise ValueError(f"n={n} rows are asked for, but the gallery has {len(there)}")
        return most_similar(wanted, there, n)


def most_similar(queries: Array, gallery: Array, n: int) -> tuple[NDArray[np.intp], Array]:
    """The same of representations; see `RetrievalMixin.retrieve`."""
    a, b = _directions(queries), _directions(gallery)
    indices, similarities = np.empty((len(a), n), dtype=np.intp), np.empty((len(a), n))
    step = max(1, PAIRS // max(len(b), 1))
    for start in range(0, len(a), step):
        at = slice(start, start + step)
        cosine = np.einsum("qk,gk->qg", a[at], b)
        indices[at] = np.argsort(-np.round(cosine, TIES), axis=1, kind="stable")[:, :n]
        similarities[at] = np.take_along_axis(cosine, indices[at], axis=1)
    return indices, np.clip(similarities, -1.0, 1.0)


def _directions(h: Array) -> Array:
    """Rows of length one; zero where they are zero."""
    largest = np.abs(h).max(axis=1, initial=0.0, keepdims=True)  # squares of what is left do not overflow
    h = np.where(largest > NOTHING, h, 0.0) / np.where(largest > NOTHING, largest, 1.0)
    length = np.sqrt(np.einsum("nk,nk->n", h, h))[:, None]
    return np.asarray(h / np.where(length > 0, length, 1.0))
