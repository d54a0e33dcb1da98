"""
Where starts end
================

Ten clusters of handwritten digits: one run of k-means after another, each from its own k-means++ start, stops
somewhere else. The search, which is the default, is given the same table.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import majorant as mj

X = load_digits().data
runs = mj.KMeans(10, algorithm="lloyd", n_init=30, random_state=0).fit(X)
search = mj.KMeans(10, random_state=0).fit(X)

# %%
# Each dot is a local optimum, and its area the number of starts that ended there.
mj.plot.starts(runs)
plt.tight_layout()

# %%
# How far the best of them is from what the search finds, and what is proved: no centres can have a lower SSE than the
# bound.
print(f"best of 30 runs {runs.inertia_:.0f}, search {search.inertia_:.0f}")
print(search.certify(X).sentence)

# %%
# The centres are digits.
figure, axes = plt.subplots(2, 5, figsize=(6, 2.6))
for ax, centre in zip(axes.flat, search.cluster_centers_, strict=True):
    ax.imshow(centre.reshape(8, 8), cmap="gray_r")
    ax.set_axis_off()
