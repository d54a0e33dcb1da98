"""The engine's family of latent classes that features predict and that predict labels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from majorant.data.chunks import Block, Chunks
from majorant.engine.latents import Latent, as_soft, entropies, tightest
from majorant.engine.problem import Bound
from majorant.models.discriminative_latent_classes.labels import LabelModel
from majorant.registry import value_class
from majorant.solvers.logits import LogitSums, log_probabilities, logit_sums, soft_moments
from majorant.solvers.softmax import SoftmaxProblem

Array = NDArray[np.float64]


@value_class
@dataclass(frozen=True)
class LatentClasses:
    """Parameters of a latent-class model."""

    theta: Array  # (n_features + 1, n_classes): coefficients of the classes, intercepts last
    alpha: Array  # (n_classes, n_labels): probability of each label given the class, above zero


@dataclass
class LatentClassFamily:
    r"""``E_i(z) = -log p(z | x_i; w) - log p(y_i | z; alpha)``, on blocks of columns (x, y).

    The sum over the rows is minimised together with

    .. math:: R(w, \alpha) = \tfrac{\lambda_2}{2} |w|^2 - \varepsilon \sum_{km} \log \alpha_{km},

    where :math:`\varepsilon` is so small that it only keeps probabilities off zero. Statistics are the sums
    :math:`\sum_i q_i(z) [x_i, 1]` and those of the labels: the M-step for w is a softmax regression, that for the
    labels' probabilities a ratio of counts.
    """

    n_states: int  # classes
    n_features: int  # columns of x
    labels: LabelModel  # what y is and how a class predicts it
    l2: float  # of the sum over rows; intercepts are not penalised
    beta: float = 1.0  # inverse temperature
    # Newton steps of an M-step (iterations of L-BFGS where there are many coefficients, eight times as many). One is
    # enough: it lowers the bound, and the next one may be closer.
    steps: int = 1
    slack: float = field(init=False, default=0.0)

    def energies(self, theta: LatentClasses, block: Block) -> Array:
        return -log_probabilities(block.columns[0], theta.theta) - self.labels.logs(theta.alpha, block.columns[1])

    def statistics(self, block: Block, q: Latent, theta: LatentClasses | None) -> Array:
        x, y = block.columns
        q = as_soft(q, self.n_states)
        return self._joined(soft_moments(x, block.weights, q), self.labels.counts(q, y, block.weights))

    def tight_pass(self, theta: LatentClasses, block: Block) -> tuple[float, Bound]:
        if self.beta != 1:
            each, q = tightest(self.energies(theta, block), self.beta)
            entropy = 0.0 if np.isinf(self.beta) else block.total(entropies(q)) / self.beta
            return block.total(each), Bound(self.statistics(block, q, theta), entropy, 0.0)
        prior, s, log_joint = self.sums(theta, block)
        expected = prior.value - float(np.sum(self.parts(s)[0] * theta.theta)) - self._of_labels(s, theta.alpha)
        free = prior.value - log_joint
        return free, Bound(s, expected - free, 0.0)

    def sums(self, theta: LatentClasses, block: Block) -> tuple[LogitSums, Array, float]:
        """Return statistics of classes given x, of classes given x and y, and the log normaliser of the latter."""
        x, y = block.columns
        q = np.empty((len(block), self.n_states))
        prior = logit_sums(x, block.weights, theta.theta)
        joint = logit_sums(x, block.weights, theta.theta, self.labels.logs(theta.alpha, y), probabilities=q)
        return prior, self._joined(joint.moments, self.labels.counts(q, y, block.weights)), joint.value

    def solve(self, s: Array, theta: LatentClasses | None, data: Chunks) -> tuple[LatentClasses, float]:
        target, counts = self.parts(s)
        problem = SoftmaxProblem(data, target, self.l2)
        first = theta is None
        start = np.zeros_like(target) if theta is None else theta.theta
        steps = (8 if first else self.steps) * (1 if problem.is_small else 8)
        coef, value, _, _ = problem.minimise(start, tol=1e-14, max_iter=steps)
        alpha = self.labels.probabilities(counts, target[-1])
        new = LatentClasses(coef, alpha)
        of_labels = self._of_labels(s, alpha)
        size = data.total_weight + abs(value) + float(np.sum(np.abs(target * coef))) + abs(of_labels)
        self.slack = 256 * float(np.finfo(np.float64).eps) * size
        return new, value - of_labels + self.labels.penalty(alpha)

    def penalty(self, theta: LatentClasses) -> float:
        return self.l2 / 2 * float(np.sum(theta.theta[:-1] ** 2)) + self.labels.penalty(theta.alpha)

    def class_weights(self, theta: LatentClasses, data: Chunks) -> Array:
        """Return the weight of the rows in each class, by x alone."""
        sums = data.map_sum(lambda block: logit_sums(block.columns[0], block.weights, theta.theta))
        return np.asarray(sums.moments[-1])

    def _joined(self, moments: Array, counts: Array) -> Array:
        return np.concatenate([moments.T, counts], axis=1)

    def parts(self, s: Array) -> tuple[Array, Array]:
        """Return the moments of x and the counts of labels that statistics hold."""
        d = self.n_features + 1
        return np.ascontiguousarray(s[:, :d].T), s[:, d:]

    def _of_labels(self, s: Array, alpha: Array) -> float:
        """Return the expected log-probability of the labels."""
        target, counts = self.parts(s)
        return self.labels.expected_log(counts, target[-1], alpha)
