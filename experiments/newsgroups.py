"""Pairs of newsgroups, and what classifies them: Figure 2 of the paper on discriminative latent classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC

import majorant as mj

Labels = NDArray[np.intp]

FILE = "text/newsgroups20_bow13312.npz"
"""Below the folder of the data."""

PAIRS = (
    ("alt.atheism", "talk.religion.misc"),
    ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"),
    ("comp.os.ms-windows.misc", "comp.windows.x"),
    ("soc.religion.christian", "talk.religion.misc"),
    ("talk.politics.guns", "talk.politics.misc"),
    ("rec.sport.baseball", "rec.sport.hockey"),
)
"""Two newsgroups each; the paper does not name its five pairs."""


@dataclass(frozen=True)
class Task:
    """Labelled and unlabelled documents of two newsgroups, and those of the test set, as tf-idf."""

    x: Any
    y: Labels
    unlabelled: Any
    x_test: Any
    y_test: Labels

    @property
    def all_rows(self) -> Any:
        return sparse.vstack([self.x, self.unlabelled]).tocsr()


def documents(folder: Path, pair: tuple[str, str], n: int, seed: int) -> Task:
    """`n` training documents with labels, drawn at random; the others of the pair keep theirs to themselves."""
    with np.load(folder / FILE, allow_pickle=False) as file:
        names = [str(name) for name in file["target_names"]]
        shape, sets = file["shape"], {}
        for part, rows in (("train", shape[0]), ("test", shape[1])):
            arrays = [file[f"{part}_{name}"] for name in ("data", "indices", "indptr")]
            counts = sparse.csr_matrix((arrays[0].astype(float), *arrays[1:]), shape=(rows, shape[2]))
            y = file[f"y_{part}"]
            kept = np.flatnonzero(np.isin(y, [names.index(name) for name in pair]))
            sets[part] = counts[kept], (y[kept] == names.index(pair[0])).astype(np.intp)
    order = np.random.default_rng((seed, n)).permutation(len(sets["train"][1]))
    tf_idf = TfidfTransformer(sublinear_tf=True).fit(sets["train"][0])
    x, y = tf_idf.transform(sets["train"][0])[order], sets["train"][1][order]
    return Task(x[:n], y[:n], x[n:], tf_idf.transform(sets["test"][0]), sets["test"][1])


def classified(folder: Path, pair: tuple[str, str], n: int, seed: int, name: str) -> dict[str, dict[str, float]]:
    """Return what one classifier reaches on one split."""
    task = documents(folder, pair, n, seed)
    return {name: scores(CLASSIFIERS[name](task), task)}


def scores(run: tuple[Any, Any], task: Task) -> dict[str, float]:
    """Accuracy and log-loss of a fitted classifier on the test documents."""
    fitted, rows = run
    right = float(np.mean(fitted.predict(rows) == task.y_test))
    loss = log_loss(task.y_test, fitted.predict_proba(rows)) if hasattr(fitted, "predict_proba") else np.nan
    return {"accuracy": right, "log-loss": float(loss)}


def tuned(make: Any, grid: dict[str, Any], scoring: str = "accuracy") -> Callable[[Task], tuple[Any, Any]]:
    return lambda task: (GridSearchCV(make, grid, cv=5, scoring=scoring).fit(task.x, task.y), task.x_test)


def reduced(make: Callable[[], Any]) -> Callable[[Task], tuple[Any, Any]]:
    """A linear SVM on few features, which are made without labels."""

    def run(task: Task) -> tuple[Any, Any]:
        features = make().fit(task.x)
        few = Task(features.transform(task.x), task.y, None, features.transform(task.x_test), task.y_test)
        return tuned(LinearSVC(), SVM_CS)(few)

    return run


def latent(**parameters: Any) -> Callable[[Task], tuple[Any, Any]]:
    return lambda task: (
        mj.DiscriminativeLatentClasses(**{"random_state": 0, **parameters}).fit(task.x, task.y),
        task.x_test,
    )


def with_unlabelled(task: Task) -> tuple[Any, Any]:
    """The penalty is that of logistic regression with a thousandth of a row's loss, C = 1e4 / N."""
    y = np.concatenate([task.y.astype(float), np.full(task.unlabelled.shape[0], np.nan)])
    k = 2
    return mj.DiscriminativeLatentClasses(k, alpha=2 * k * 1e-4, random_state=0).fit(task.all_rows, y), task.x_test


def self_training(task: Task) -> tuple[Any, Any]:
    y = np.concatenate([task.y, np.full(task.unlabelled.shape[0], -1)])
    best = tuned(LogisticRegression(max_iter=2000), CS)(task)[0].best_estimator_
    return SelfTrainingClassifier(best).fit(task.all_rows, y), task.x_test


CS = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0]}
SVM_CS = {"C": [0.01, 0.1, 1.0, 10.0]}
CLASSIFIERS: dict[str, Callable[[Task], tuple[Any, Any]]] = {
    "latent classes, K = 5": latent(n_classes=5),
    "latent classes, K = 15": latent(n_classes=15, init="relaxation"),
    "latent classes, relaxation": latent(n_classes=5, init="relaxation"),
    "latent classes, random": latent(n_classes=5, init="random", n_init=1),
    "latent classes, with unlabelled": with_unlabelled,
    "linear SVM": tuned(LinearSVC(), SVM_CS),
    "logistic regression, C by accuracy": tuned(LogisticRegression(max_iter=2000), CS),
    "logistic regression, C by log-loss": tuned(LogisticRegression(max_iter=2000), CS, "neg_log_loss"),
    "PCA and SVM": reduced(lambda: TruncatedSVD(20, random_state=0)),
    "topics and SVM": reduced(lambda: LatentDirichletAllocation(15, max_iter=20, random_state=0)),
    "self-training": self_training,
}
