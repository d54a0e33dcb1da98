"""What a user writes, and what their type checker makes of it; it runs, too."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import majorant as mj
from majorant.summary import Summary

random = np.random.default_rng(0)
labels = np.repeat([0, 1], 30)
X = random.normal(size=(60, 2)) + 6.0 * labels[:, None]
y = X[:, 0] * (1.0 - 2.0 * labels) + random.normal(size=60)

centres = mj.KMeans(2, random_state=0).fit(X)
assert_type(centres, mj.KMeans)
assert_type(centres.predict(X), NDArray[np.int32])
assert_type(centres.inertia_, float)
assert_type(centres.search_, mj.SearchReport)
assert_type(centres.search_.n_starts, int)
assert_type(centres.trace_, mj.Trace)
assert_type(centres.summary(), Summary)
assert_type(centres.certify(X).bound, float)
assert_type(centres.certify(X).sentence, str)
mj.KMeans(2, bounds=mj.GibbsLimit(eta=0.1)).fit(X, sample_weight=np.ones(60))

groups = mj.GaussianMixture(2, random_state=0).fit(X)
assert_type(groups, mj.GaussianMixture)
assert_type(groups.search_, mj.SearchReport)
assert_type(groups.log_likelihood_, float)
assert_type(groups.regular_, bool)
assert_type(groups.bic(X), float)

lines = mj.RegressionMixture(2, random_state=0).fit(X[:, :1], y)
assert_type(lines, mj.RegressionMixture)
assert_type(lines.predict(X[:, :1]), NDArray[np.float64])
assert_type(lines.coef_, NDArray[np.float64])
assert_type(lines.search_, mj.SearchReport)

classes = mj.DiscriminativeLatentClasses(2, random_state=0).fit(X, labels)
assert_type(classes.predict(X), NDArray[Any])
assert_type(classes.search_, mj.SearchReport)
assert_type(mj.LatentPrototypeClassifier(1).fit(X, labels).predict_proba(X), NDArray[np.float64])
assert_type(mj.LatentSVC(random_state=0).fit(X, labels).predict(X), NDArray[Any])
assert_type(mj.DiscriminativeClustering(2, random_state=0).fit(X).search_, mj.SearchReport)

shared = mj.Harmonium(1, random_state=0).fit(X)
assert_type(shared, mj.Harmonium)
assert_type(shared.transform(X), NDArray[np.float64])

assert_type(mj.stability(mj.KMeans(2), X, n_runs=2, random_state=0), mj.Stability)
chosen = mj.select(mj.GaussianMixture(random_state=0), X, n_components=range(1, 3))
assert_type(chosen, mj.Selection)

# What is wrong is seen before it runs: an ignore that nothing needs is an error of its own.


def wrong() -> None:
    mj.KMeans("three")  # type: ignore[arg-type]
    mj.KMeans(3).fit()  # type: ignore[call-arg]
    mj.GaussianMixture(3, covariance="full")  # type: ignore[call-arg]
    mj.Kmeans(3)  # type: ignore[attr-defined]
