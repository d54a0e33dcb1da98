"""
What two views have in common
=============================

The upper and the lower half of handwritten digits are two views of the same things. A harmonium finds a few numbers
that both share and that separate the digits; either half alone is enough to ask it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import majorant as mj

digits = load_digits(n_class=4)
pixels = (digits.data > 7).astype(float)
X = {"upper": pixels[:, :32], "lower": pixels[:, 32:]}
views = {name: mj.Bernoulli() for name in X}
model = mj.HarmoniumClassifier(3, views=views, l2=10.0, random_state=0)
train = np.arange(len(pixels)) % 2 == 0
model.fit({name: half[train] for name, half in X.items()}, digits.target[train])
print(model.certificate_.sentence)

# %%
# The first two of the shared numbers of the other rows, by digit.
Z = model.transform({name: half[~train] for name, half in X.items()})
figure, ax = plt.subplots()
for digit in range(4):
    ax.plot(*Z[digits.target[~train] == digit, :2].T, ".", label=str(digit))
ax.legend(title="digit")
ax.set(xlabel="first component", ylabel="second component")

# %%
# Rows of which one half is all there is.
rows = {name: half[~train] for name, half in X.items()}
for name in X:
    other = {key: half if key == name else None for key, half in rows.items()}
    print(f"the {name} half alone: {np.mean(model.predict(other) == digits.target[~train]):.2f} right")
