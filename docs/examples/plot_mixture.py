"""
Overlapping groups, and cells that are missing
==============================================

A Gaussian mixture of irises whose petal widths are gone from every third row. The missing cells are integrated out: no
row is dropped and nothing is filled in.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

import majorant as mj

iris = load_iris()
X = iris.data.copy()
X[::3, 3] = np.nan
model = mj.GaussianMixture(3, random_state=0).fit(X)
print(model.summary())

# %%
# The density, and how sure each row's component is, for the rows that are complete.
complete = ~np.isnan(X).any(axis=1)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
mj.plot.density(model, X[complete], features=[2, 3], ax=left)
mj.plot.uncertainty(model, X[complete], features=[2, 3], ax=right)
plt.tight_layout()

# %%
# Rows without a width are put among the others all the same.
for name, rows in (("complete rows", complete), ("rows without a width", ~complete)):
    print(f"{name}: adjusted Rand index {adjusted_rand_score(iris.target[rows], model.predict(X[rows])):.2f}")
