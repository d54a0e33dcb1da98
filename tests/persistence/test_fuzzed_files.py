"""Ten thousand damaged files, of every model: each ends in one clear error, or is read as a model of its class."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from majorant.persistence import SavedModelError, load, save

from ..estimators import ESTIMATORS, fit
from .test_hostile_files import members_of, mutated, zipped

N_FILES = 10_000
ROWS = np.random.default_rng(5).normal(size=(30, 3))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_damaged_files_of_every_model(cls: type[Any], tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(fit(cls, ROWS, 2), path)
    content = path.read_bytes()
    members = members_of(content)
    rng = random.Random(cls.__name__)
    n_refused = 0
    for number in range(-(-N_FILES // len(ESTIMATORS))):
        if number % 2:
            damaged = mutated(content, rng)
        else:  # a sound archive of damaged members
            name = rng.choice(["meta.json", *members])
            damaged = zipped({**members, name: mutated(members[name], rng)})
        path.write_bytes(damaged)
        try:
            assert type(load(path)) is cls
        except SavedModelError as error:
            assert str(path) in str(error)
            n_refused += 1
    assert n_refused > 0
