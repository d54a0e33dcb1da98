"""What the kernels answer under one instruction set: run as a script, with the path of the .npz file to write.

Numbers are small integers where an answer is a choice: it is then the same to the last bit whatever the order of sums.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant import _kernels

SHAPES = [(k, d) for k in (1, 2, 7, 8, 9, 31, 33, 100) for d in (1, 3, 16, 63, 64, 65, 200)]
DTYPES = {"double": np.float64, "single": np.float32}


def answers() -> dict[str, NDArray[Any]]:
    """Answers of all kernels by name; those that are choices begin with "exact"."""
    random, out = np.random.default_rng(0), {"isa": np.array(_kernels.isa())}
    for name, dtype in DTYPES.items():
        for k, d in SHAPES:
            n = 97
            at = f"{name} {k} {d}"
            x, centres = (random.integers(-3, 4, (m, d)).astype(dtype) for m in (n, k))
            w, labels, nearest = random.random(n), np.full(n, -1, dtype=np.int32), np.empty(n, dtype=dtype)
            sums = np.empty((k, d + 2))
            _kernels.assign(x, w, centres, sums, labels, nearest)
            out |= {f"exact labels {at}": labels, f"exact nearest {at}": nearest, f"moments {at}": sums}
            given = np.empty((k, d + 2))
            _kernels.moments(x, w, centres, labels, given)
            table = np.empty((n, k), dtype=dtype)
            _kernels.distances(x, centres, table)
            out |= {f"given moments {at}": given, f"exact distances {at}": table}
            least, argument = np.empty(n, dtype=dtype), np.empty(n, dtype=np.int32)
            _kernels.row_minimum(table, least, argument)
            z = np.empty(n, dtype=np.int32)
            excess, moved = _kernels.draw(table, w, least, argument, 0.2, random.random(n), z)
            out |= {f"exact argument {at}": argument, f"exact drawn {at}": z, f"excess {at}": np.array([excess, moved])}
            walked = argument.copy()
            _kernels.walk(table, None, least, 30.0, random.integers(0, n, 500), random.random(500), walked)
            out[f"exact walked {at}"] = walked
            collected = np.empty((k, d))
            _kernels.collect(x, w, z, collected)
            out[f"collected {at}"] = collected
            order, is_new = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.uint8)
            _kernels.sort_rows(x, order, is_new)
            seeds = np.empty(k, dtype=np.int64)
            _kernels.plus_plus(x, None, random.random((k, 3)), seeds)
            out |= {f"exact order {at}": order, f"exact news {at}": is_new, f"exact seeds {at}": seeds}
    return out | chain_answers(random) | bag_answers(random) | grid_answers(random)


def chain_answers(random: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Answers of the kernels of chains, under names as in `answers`."""
    out = {}
    for states in (1, 2, 3, 17):
        offsets = np.array([0, 1, 40, 40, 97])
        unary = random.integers(-3, 4, (97, states)).astype(np.float64)
        transitions = random.integers(-3, 4, (2, states, states)).astype(np.float64)
        table = random.integers(0, 2, 97).astype(np.int32)
        scores = unary, transitions, offsets, table
        path, drawn = np.empty(97, dtype=np.int32), np.empty((3, 97), dtype=np.int32)
        total, entropy, best = np.empty(4), np.empty(4), np.empty(4)
        marginals, steps = np.empty_like(unary), np.zeros_like(transitions)
        pairs = np.empty((97, states, states))
        _kernels.chain_sums(*scores, None, total, entropy, marginals, steps, pairs)
        _kernels.chain_best(*scores, path, best)
        _kernels.chain_draw(*scores, random.random((3, 97)), drawn)
        out |= {f"exact path {states}": path, f"exact best {states}": best, f"exact chain drawn {states}": drawn}
        out |= {f"chain sums {states}": np.concatenate([total, entropy]), f"marginals {states}": marginals}
        out |= {f"steps {states}": steps, f"pairs {states}": pairs} | chain_pass_answers(states)
    return out


def chain_pass_answers(states: int) -> dict[str, NDArray[Any]]:
    """Answers of the pass over hidden Markov models."""
    random, offsets = np.random.default_rng(states), np.array([0, 1, 40, 240])
    start, steps = random.dirichlet(np.ones(states), 2), random.dirichlet(np.ones(states), (2, states))
    log_density = random.normal(scale=3.0, size=(2, 240, states))
    q, here, total = np.empty_like(log_density), np.empty_like(log_density), np.empty((2, 3))
    first, counts = np.zeros_like(start), np.zeros_like(steps)
    _kernels.chain_pass(start, steps, offsets, log_density, None, here, total, None, None)
    _kernels.chain_pass(start, steps, offsets, log_density, random.random((1, 3)), q, total, first, counts)
    found = {"total": total, "smoothed": q, "filtered": here, "first": first, "counts": counts}
    return {f"chain pass {name} {states}": values for name, values in found.items()}


def bag_answers(random: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Answers of the kernels for bags, under names as in `answers`."""
    out: dict[str, NDArray[Any]] = {}
    for name, dtype in DTYPES.items():
        for d, classes, first in ((3, 5, 1), (16, 4, 0), (21, 9, 0), (67, 11, 2)):
            for form in ("dense", "csr"):
                counts = random.integers(1, 22, 13)
                starts, n_rows = np.cumsum(counts) - counts, int(counts.sum())
                codes = random.integers(0, classes, 13).astype(np.int32)
                # Choices on whole numbers are exact; steps are taken on others, which have no ties.
                whole = random.integers(-1, 2, (n_rows, d)) * random.integers(0, 2, (n_rows, d))
                rows = {"whole": whole, "real": whole * random.normal(size=(n_rows, d))}
                shares, cost = random.random(13), 1.0 - np.eye(classes)
                w = random.integers(-3, 4, (classes, d + 1)).astype(np.float64)
                w[:first] = 0
                at = f"{name} {form} {d} {classes}"
                of = {
                    key: _kernels.bags(*_entries(x.astype(dtype), form), d, 0.5, starts, counts, codes, classes, first)
                    for key, x in rows.items()
                }
                best, where = np.empty((13, classes)), np.empty((13, classes), dtype=np.int32)
                own = np.empty((13, 21))
                of["whole"].scores(0, 13, w, best, where, own)
                out |= {f"exact best {at}": best, f"exact where {at}": where, f"exact own {at}": own}
                gradient = np.empty_like(w)
                for beta in (0.0, 2.0):
                    value = of["real"].pooled(0, 13, w, shares, cost, beta, 8.0, gradient)
                    out[f"pooled {at} {beta}"] = np.append(gradient, value)
                label, row = (np.zeros((13, 6), dtype=np.int32) for _ in range(2))
                share, used = np.zeros((13, 6)), np.zeros(13, dtype=np.int32)
                planes, left = (label, row, share, used), []
                for online in (True, True, False):
                    # After a step two planes are equal but for rounding: one step a bag, and other weights then.
                    steps = random.normal(size=w.shape)
                    steps[:first] = 0
                    left += of["real"].sweep(shares, cost, 2.0, None, None, online, 1, np.arange(13), *planes, steps)
                loss = of["real"].mixture(0, 13, shares, cost, *planes, gradient)
                out |= {f"exact labels of planes {at}": label, f"exact rows of planes {at}": row}
                out |= {f"steps {at}": steps, f"left {at}": np.array(left), f"shares {at}": share}
                out[f"mixture {at}"] = np.append(gradient, loss)
    return out


def grid_answers(random: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Answers of the kernels for grids of regions, under names as in `answers`."""
    out: dict[str, NDArray[Any]] = {}
    for name, dtype in DTYPES.items():
        for d, regions, classes, parts in ((3, 4, 3, 2), (16, 9, 2, 8), (21, 5, 4, 17), (70, 2, 3, 33)):
            starts = random.permutation(13) * (regions + 1)
            codes = random.integers(0, classes, 13).astype(np.int32)
            # Choices on whole numbers are exact; steps are taken on others, which have no ties.
            whole = random.integers(-1, 2, (13 * (regions + 1), d))
            rows = {"whole": whole, "real": whole * random.normal(size=whole.shape)}
            shares, cost = random.random(13), 1.0 - np.eye(classes)
            w = random.integers(-3, 4, parts * (d + classes * regions)).astype(np.float64)
            at = f"{name} {d} {parts}"
            of = {
                key: _kernels.grids(x.astype(dtype), starts, regions, codes, classes, parts, 0.5)
                for key, x in rows.items()
            }
            best, label = np.empty((13, classes)), np.empty(13, dtype=np.int32)
            chosen, own = np.empty((13, regions), dtype=np.int32), np.empty((13 * regions, parts))
            of["whole"].infer(0, 13, w, cost, False, best, label, chosen, own)
            out |= {f"exact scores {at}": best, f"exact label {at}": label, f"exact parts {at}": chosen}
            out[f"exact terms {at}"] = own
            gradient = np.empty_like(w)
            for beta in (0.0, 2.0):
                value = of["real"].pooled(0, 13, w, shares, cost, beta, 8.0, gradient)
                out[f"pooled grids {at} {beta}"] = np.append(gradient, value)
            labels, maps = np.zeros((13, 6), dtype=np.int32), np.zeros((13, 6, regions), dtype=np.int32)
            share, used = np.zeros((13, 6)), np.zeros(13, dtype=np.int32)
            planes, left = (labels, maps, share, used), []
            for online in (True, True, False):
                # After a step two planes are equal but for rounding: one step an image, and other weights then.
                steps = random.normal(size=w.shape)
                left += of["real"].sweep(shares, cost, 2.0, None, None, online, 1, np.arange(13), *planes, steps)
            loss = of["real"].mixture(0, 13, shares, cost, *planes, gradient)
            out |= {f"exact labels of images {at}": labels, f"exact maps {at}": maps}
            out |= {f"grid steps {at}": steps, f"grid left {at}": np.array(left), f"grid shares {at}": share}
            out[f"grid mixture {at}"] = np.append(gradient, loss)
    return out


def _entries(x: NDArray[Any], form: str) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]:
    """Rows as `_kernels.bags` takes them: as they are, or as entries with edges and columns."""
    if form == "dense":
        return x, None, None
    row, column = np.nonzero(x)
    edges = np.append(0, np.cumsum(np.bincount(row, minlength=len(x))))
    return x[row, column][None, :], edges, column.astype(np.int32)


if __name__ == "__main__":
    np.savez(sys.argv[1], **answers())
