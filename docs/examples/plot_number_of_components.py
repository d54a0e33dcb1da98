"""
How many components, and of which shape?
========================================

Sizes and covariances compared by BIC. A fit in which a component has collapsed is left out by name: its likelihood is
not set by the rows, and no criterion that is made of it means anything.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import majorant as mj

X = scale(load_wine().data[:, [0, 6, 9, 12]])
chosen = mj.select(
    mj.GaussianMixture(random_state=0), X, n_components=range(1, 6), covariance_type=["full", "tied", "diag"]
)
print(chosen.sentence)

# %%
mj.plot.criterion(chosen)
plt.tight_layout()

# %%
# What the best one says of the rows.
mj.plot.classification(chosen.best_estimator_, X)
plt.tight_layout()
