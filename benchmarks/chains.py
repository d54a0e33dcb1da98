"""Chains of bits, one for every document and word: millions of (document, word, paragraph) cells a second on one core.

    python benchmarks/chains.py [--documents 2000] [--words 50] [--paragraphs 10] [--states 2] [--rounds 5]

Every chain has transitions of its own, as in a harmonium whose transitions depend on its latents. Told are medians over
rounds, of CPU time on one thread, beside the same sums in numpy, vectorised over all chains.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from numpy.typing import NDArray

from majorant.solvers import Chains

Array = NDArray[np.float64]


def chains_of(n: int, length: int, n_states: int) -> Chains:
    """Random scores; a table of transitions for each chain."""
    random = np.random.default_rng(0)
    table = np.repeat(np.arange(n, dtype=np.int32), length)
    return Chains(
        random.normal(size=(n * length, n_states)),
        random.normal(size=(n, n_states, n_states)),
        np.arange(0, n * length + 1, length),
        table,
    )


def numpy_marginals(unary: Array, transitions: Array) -> Array:
    """Forward-backward in logarithms, `unary` of shape (n_chains, length, n_states)."""
    ahead, back = np.empty_like(unary), np.zeros_like(unary)
    ahead[:, 0] = unary[:, 0]
    length = unary.shape[1]
    for t in range(1, length):
        ahead[:, t] = unary[:, t] + np.logaddexp.reduce(ahead[:, t - 1, :, None] + transitions, axis=1)
    for t in range(length - 2, -1, -1):
        back[:, t] = np.logaddexp.reduce(transitions + (unary[:, t + 1] + back[:, t + 1])[:, None], axis=2)
    log_partition = np.logaddexp.reduce(ahead[:, -1], axis=1)
    return np.asarray(np.exp(ahead + back - log_partition[:, None, None]))


def main() -> None:
    """Print a line for each question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--words", type=int, default=50)
    parser.add_argument("--paragraphs", type=int, default=10)
    parser.add_argument("--states", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    n = given.documents * given.words
    chains = chains_of(n, given.paragraphs, given.states)
    cells = n * given.paragraphs
    uniforms = np.random.default_rng(1).random(cells)
    unary = chains.unary.reshape(n, given.paragraphs, given.states)
    questions: dict[str, Callable[[], Any]] = {
        "log-partition": lambda: chains.log_partition(n_jobs=1),
        "marginals, steps, entropy": lambda: chains.sums(n_jobs=1),
        "best paths": lambda: chains.best(n_jobs=1),
        "draws": lambda: chains.sample(uniforms, n_jobs=1),
        "marginals in numpy": lambda: numpy_marginals(unary, chains.transitions),
    }
    seconds: dict[str, list[float]] = {question: [] for question in questions}
    for _ in range(given.rounds):
        for question, answer in questions.items():
            start = time.process_time()
            answer()
            seconds[question].append(time.process_time() - start)
    print(f"{given.documents} documents x {given.words} words x {given.paragraphs} paragraphs, {given.states} states")
    for question, times in seconds.items():
        print(f"{question:26s}{cells / np.median(times) / 1e6:8.1f} million cells a second a core")


if __name__ == "__main__":
    main()
