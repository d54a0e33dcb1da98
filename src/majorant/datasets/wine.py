"""The wine table: 178 wines of three cultivars, 13 chemical measurements (UCI; it ships with scikit-learn)."""

from __future__ import annotations

import csv
import io


def wine_csv() -> bytes:
    """Return the measurements as CSV, one row per wine, without the cultivars."""
    from sklearn.datasets import load_wine

    wine = load_wine()
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(wine.feature_names)
    writer.writerows(wine.data.tolist())
    return text.getvalue().encode("utf-8")
