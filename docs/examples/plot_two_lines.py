"""
Two ways to hear an octave
==========================

A musician tuned tones to the octave of a fundamental whose overtones were stretched (E. A. Cohen, 1984). Some answers
follow the overtones, others the octave as it is remembered: a mixture of two lines.
"""

import io

import matplotlib.pyplot as plt
import numpy as np

import majorant as mj
from majorant.datasets import tone_csv

stretch, tuned = np.loadtxt(io.BytesIO(tone_csv()), delimiter=",", skiprows=1).T
model = mj.RegressionMixture(2, random_state=0).fit(stretch[:, None], tuned)
print(model.summary())

# %%
# Both lines, with bands of 1.96 of their own noise; a row has the colour of the line that it most likely follows.
own = model.predict_proba(stretch[:, None], tuned).argmax(axis=1)
grid = np.linspace(stretch.min(), stretch.max(), 100)
figure, ax = plt.subplots()
for line, colour in enumerate(("C0", "C1")):
    middle = model.intercept_[line] + model.coef_[line, 0] * grid
    ax.plot(grid, middle, color=colour)
    ax.fill_between(
        grid, middle - 1.96 * model.scale_[line], middle + 1.96 * model.scale_[line], color=colour, alpha=0.2
    )
    ax.plot(stretch[own == line], tuned[own == line], ".", color=colour)
ax.set(xlabel="stretch ratio of the overtones", ylabel="tuned ratio")

# %%
# Where the starts of the fit ended.
mj.plot.starts(model)
plt.tight_layout()
