"""The types that come with the package are of use to who imports it, under the strictest settings."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

USER = Path(__file__).with_name("user_code.py")


def test_strict_types(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Checked as the user's own file, outside the checkout and without its settings."""
    pytest.importorskip("mypy")
    own = tmp_path / "analysis.py"
    own.write_text(USER.read_text(encoding="utf-8"), encoding="utf-8")
    cache = request.config.cache
    where = tmp_path / "cache" if cache is None else cache.mkdir("mypy")
    check = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--cache-dir", str(where), str(own)]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Success: no issues found in 1 source file" in done.stdout, done.stdout + done.stderr


def test_it_runs_and_finds_what_its_data_hold() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = runpy.run_path(str(USER))
    X, labels = found["X"], found["labels"]
    for clustering in (found["centres"], found["groups"]):
        assert adjusted_rand_score(labels, clustering.predict(X)) > 0.95
    assert np.sort(np.ravel(found["lines"].coef_)).round(0).tolist() == [-1.0, 1.0]
    assert found["classes"].score(X, labels) > 0.95
    assert found["chosen"].best_estimator_.n_components == 2
