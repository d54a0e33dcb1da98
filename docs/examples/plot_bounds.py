"""
Bounds that explore
===================

From random partitions, Lloyd's algorithm stops at the optimum nearest to the start. Random bounds of the same objective
leave it: the start no longer decides.
"""

import matplotlib.pyplot as plt
import numpy as np

import majorant as mj

random = np.random.default_rng(0)
X = np.repeat(random.uniform(0, 30, (15, 2)), 40, axis=0) + random.normal(size=(600, 2))
settings = {"init": "random-partition", "n_init": 1}
found = {
    "Lloyd": [mj.KMeans(15, **settings, random_state=s).fit(X).inertia_ for s in range(20)],
    "random bounds": [
        mj.KMeans(15, **settings, bounds=mj.GibbsLimit(eta=0.02), random_state=s).fit(X).inertia_ for s in range(20)
    ],
}
search = mj.KMeans(15, random_state=0).fit(X)

# %%
# The SSE of 20 fits each, and what the default search finds.
figure, ax = plt.subplots(figsize=(6, 2.5))
for row, values in enumerate(found.values()):
    ax.plot(values, np.full(len(values), row), "o", alpha=0.4)
ax.axvline(search.inertia_, color="black", linewidth=1)
ax.set(yticks=range(len(found)), yticklabels=found, ylim=(-0.5, 1.5), xlabel="SSE")
plt.tight_layout()
