"""The wine table: 178 wines of three cultivars, 13 chemical measurements (UCI; it ships with scikit-learn)."""

from __future__ import annotations

import csv
import io


def wine_csv(*, cultivars: bool = False) -> bytes:
    """Return the measurements as CSV, one row per wine, and the cultivars in a last column if asked for."""
    from sklearn.datasets import load_wine

    wine = load_wine()
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*wine.feature_names, "cultivar"] if cultivars else wine.feature_names)
    for row, cultivar in zip(wine.data.tolist(), wine.target_names[wine.target], strict=True):
        writer.writerow([*row, cultivar] if cultivars else row)
    return text.getvalue().encode("utf-8")
