"""Search by races: rounds of mixed starts and perturbations, until the best optimum keeps coming back.

The search knows neither densities nor laws: it compares runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from majorant._progress import end_of_starts, is_stopped, kept_when_stopped, report_start, tell
from majorant.engine.checkpoint import Entry, entered
from majorant.search.contestants import Contest, Finishing, Found, Leaving, Run, Theta, entrants, raced_note
from majorant.search.record import PERTURBATION, SAME_OPTIMUM, StartRecord

FIRST, ROUGH = 1e-7, 1e-8
"""Tolerances per unit of weight in a race: in the first round, and in later ones."""
MET_OBJECTIVE, MET_FEATURES = 1e-3, 1e-2
"""Differences of objective and of features below which two unfinished runs are taken for the same optimum."""
FINISHING, BARREN = (100,), (25, 75)
"""Steps after which runs that are far behind are left, and those before it if none counts, to leave what collapses."""
LEAST_STARTS = 3
"""Smallest number of starts (not perturbations) that are run to convergence or until they join a converged run."""
KEPT = ("_finals", "_degenerate", "_free", "_dropped")
"""Lists of runs that a checkpoint keeps of a race."""
DISTINCT_FEATURES = 0.1
"""Difference of features above which optima of equal objective are distinct."""


def _n_starts(run: Run[Any]) -> int:
    """Count the independent starts that reached a run's optimum."""
    return sum(source != PERTURBATION for source in (run.source, *(source for source, _ in run.met)))


@dataclass
class Race(Generic[Theta]):
    """Rounds of one contest."""

    contest: Contest[Theta]
    verbose: int = 0
    _finals: list[Run[Theta]] = field(default_factory=list)
    _degenerate: list[Run[Theta]] = field(default_factory=list)
    _bank: list[Run[Theta]] = field(default_factory=list)
    _free: list[Run[Theta]] = field(default_factory=list)
    _dropped: list[Run[Theta]] = field(default_factory=list)
    _features: dict[int, tuple[Theta, NDArray[np.float64]]] = field(default_factory=dict)
    _underway: list[Run[Theta]] = field(default_factory=list)
    _n_started: int = 0
    _n_perturbed: int = 0

    def find(self, draws: np.random.Generator) -> Found[Theta]:
        """Race until the best regular optimum has come back often enough."""
        contest, plan = self.contest, self.contest.plan
        best, improved, first = (True, np.inf), 0, 0
        entry = self._entry()
        if entry is not None and entry.state is not None:
            first, improved, best = self._recalled(entry, draws)
        with kept_when_stopped(lambda: bool(self._finals or self._degenerate or self._underway)):
            for number in range(first, plan.most_rounds):
                rows = contest.sample(draws) if contest.is_sampled else contest.whole
                self._keep(self._raced(rows, *self._entries(rows, number, draws)))
                if number == 0 and self._bank and contest.has_rule and plan.n_beyond:
                    self._look_beyond_the_rule(rows, draws)
                leader = min(self._bank[:1] or self._degenerate, key=lambda run: run.rank)
                here = leader.rank
                if here < (best[0], best[1] - self._same(best[1])):
                    best, improved = here, number
                if is_stopped():
                    break
                is_left = isinstance(contest, Leaving) and contest.leaves(leader)
                is_over = is_left or self._is_enough(number, improved)
                if entry is not None:
                    next_one = plan.most_rounds if is_over else number + 1
                    entry.keep(self._state(draws) | {"rounds": (next_one, improved), "best": best})
                if is_over:
                    break
        if is_stopped() and not self._bank:
            self._keep(contest.run(contest.whole, self._underway[:1], 0, contest.tol))
        end_of_starts(self.verbose)
        return self._found()

    def _entry(self) -> Entry | None:
        """Return where a checkpoint keeps the rounds; None where it keeps the descents of a single round."""
        contest, plan = self.contest, self.contest.plan
        if isinstance(contest, Finishing):
            return None
        settings = {"tol": contest.tol, "max_iter": contest.max_iter, "rounds": plan.most_rounds}
        return entered(loop="race", constant=contest.constant, **settings)

    def _state(self, draws: np.random.Generator) -> dict[str, Any]:
        """Return what the next round depends on, and the objective of a run by which other data are told apart."""
        runs = {name: list(getattr(self, name)) for name in KEPT}
        return {
            **runs,
            "n_begun": (self._n_started, self._n_perturbed),
            "draws": draws.bit_generator.state,
            "beside": getattr(self.contest, "best_degenerate", None),
            "objective": self._checked((self._bank or self._degenerate)[0]),
        }

    def _checked(self, run: Run[Theta]) -> float:
        return self.contest.run(self.contest.whole, [run], 0, self.contest.tol)[0].objective

    def _recalled(self, entry: Entry, draws: np.random.Generator) -> tuple[int, int, tuple[bool, float]]:
        """Restore a race after its last whole round; return the next one, the last that improved, and the best."""
        state = entry.state
        assert state is not None
        for name in KEPT:
            setattr(self, name, list(state[name]))
        self._keep([])
        entry.check("objective", self._checked((self._bank or self._degenerate)[0]))
        self._n_started, self._n_perturbed = state["n_begun"]
        draws.bit_generator.state = state["draws"]
        if state["beside"] is not None:
            self.contest.best_degenerate = state["beside"]  # type: ignore[attr-defined]
        return *state["rounds"], state["best"]

    def _entries(
        self, rows: Any, number: int, draws: np.random.Generator
    ) -> tuple[list[Run[Theta]], tuple[tuple[int, int], ...]]:
        """Return the starts, or perturbations of the optima so far, and the rounds of their race."""
        plan = self.contest.plan
        begins_anew = number == 0 or (plan.starts_every > 0 and number % plan.starts_every == 0)
        bases = self._bank
        if not bases and plan.starts_every == 0:  # there may be one that counts beside those that do not
            bases = sorted(self._degenerate, key=lambda run: run.objective)[: plan.n_kept]
        if begins_anew or not bases or (not self._bank and number % 2 == 0):  # and by turns while none counts
            starts = self.contest.starts(rows, number == 0, draws)
            self._n_started += len(starts)
            return entrants(starts), plan.race
        perturbed = self.contest.perturbed(rows, [run.theta for run in bases], plan.n_perturbations, draws)
        self._n_perturbed += len(perturbed)
        return entrants(perturbed), plan.perturbation_race or plan.race

    def _same(self, objective: float) -> float:
        return same_optimum(objective, self.contest.constant)

    def _raced(self, rows: Any, runs: list[Run[Theta]], heats: tuple[tuple[int, int], ...]) -> list[Run[Theta]]:
        """Race by successive halving: a few steps for all, more for the best, to the end for some."""
        contest, plan = self.contest, self.contest.plan
        for number, (n_steps, n_kept) in enumerate(heats):
            runs = contest.run(rows, runs, min(n_steps, self._left(runs)), ROUGH if number else FIRST)
            tell(f"{self._n_started + self._n_perturbed} starts and perturbations begun")
            runs = sorted(runs if plan.tells_all else self._merged(runs), key=lambda run: run.rank)
            if self._is_barren:  # the likeliest may all be about to collapse, and what has collapsed stays so
                n_kept = max(n_kept, sum(run.is_regular for run in runs))
            if plan.tells_all:
                dropped = runs[n_kept:]
                self._dropped += contest.run(contest.whole, dropped, 0, 0.0) if contest.is_sampled else dropped
            self._underway = runs = runs[:n_kept]
        if isinstance(contest, Finishing):
            ends = contest.finished(rows, runs)
            best = min(end.objective for end in ends)
            ahead = [run for run in self._dropped if run.objective < best]  # on a sample they fell behind
            self._dropped = [run for run in self._dropped if run.objective >= best]
            return ends + contest.run(contest.whole, ahead, contest.max_iter, contest.tol)
        if not contest.is_sampled:
            if not plan.least_rounds:  # no other optimum is perturbed: only what may be better than the leader goes on
                self._keep(self._finished(rows, self._worth_following(runs[:1])))
                runs = runs[1:]
            return self._finished(rows, self._worth_following(runs))
        runs = sorted(contest.run(rows, runs, self._left(runs), FIRST), key=lambda run: run.rank)
        kept = self._met(runs, len(runs) if plan.tells_all else 3)
        return contest.run(contest.whole, kept, contest.max_iter, contest.tol)

    def _finished(self, rows: Any, runs: list[Run[Theta]]) -> list[Run[Theta]]:
        """Finish runs, except those too far behind: a run gains less in future than in its last steps."""
        contest, plan, ends, left = self.contest, self.contest.plan, runs, list[Run[Theta]]()
        for n_steps in BARREN if self._is_barren else FINISHING:
            runs, lost = self._standing(ends)
            left += lost
            ends = contest.run(rows, runs, min(n_steps, self._left(runs)), contest.tol)
        best = min([self._limit, *(end.objective for end in ends if end.is_regular)])
        if np.isinf(best) and plan.keeps_barren:  # none counts: what is kept in the end is followed then
            return left + ends
        n_done = sum(_n_starts(run) for run in (*self._finals, *(end for end in ends if end.converged)))
        unfinished = []
        for run, end in zip(runs, ends, strict=True):
            may_lead = end.objective - (run.objective - end.objective) < best
            is_due = plan.tells_all or (_n_starts(end) and n_done < LEAST_STARTS)
            if not end.converged and (may_lead or is_due):
                unfinished.append(end)
                n_done += _n_starts(end)
        unfinished, lost = self._standing(unfinished)
        if np.isinf(best) and not plan.tells_all:  # only the likeliest is followed to its end
            known = min((run.objective for run in self._degenerate), default=np.inf)
            unfinished.sort(key=lambda end: end.objective)
            n_followed = sum(end.objective < known - self._same(known) for end in unfinished[:1])
            unfinished, lost = unfinished[:n_followed], unfinished[n_followed:]
        finished = contest.run(rows, unfinished, self._left(unfinished), contest.tol)
        return [end for end in ends if end.converged] + left + lost + finished

    def _left(self, runs: list[Run[Theta]]) -> int:
        """Return how many steps runs that began together may still take."""
        return max(self.contest.max_iter - max((run.n_iter for run in runs), default=0), 0)

    @property
    def _is_barren(self) -> bool:
        """Whether none of some runs counts, in a plan in which those that may collapse go on."""
        return self.contest.plan.keeps_barren and bool(self._degenerate) and not self._bank

    def _standing(self, runs: list[Run[Theta]]) -> tuple[list[Run[Theta]], list[Run[Theta]]]:
        """Return the runs that count, or the likeliest where none does, and those that have collapsed and stay so."""
        if not self.contest.plan.keeps_barren:
            return runs, []
        runs = sorted(runs, key=lambda run: run.rank)
        n_standing = sum(run.is_regular for run in runs) or 1
        return runs[:n_standing], runs[n_standing:]

    @property
    def _limit(self) -> float:
        """Objective below which runs continue: if only one solution is perturbed, only better runs do."""
        return self._bank[0].objective if self._bank and self.contest.plan.n_kept == 1 else np.inf

    def _worth_following(self, runs: list[Run[Theta]]) -> list[Run[Theta]]:
        """Return the runs that may still change the set of optima, without those that reached one in it."""
        out = []
        for run in runs:
            here = next((i for i, known in enumerate(self._finals) if self._are_near(run, known)), None)
            if here is not None:
                known = self._finals[here]
                self._finals[here] = replace(known, met=(*known.met, (run.source, run.n_iter), *run.met))
            elif np.isinf(self._limit) or (run.is_regular and run.heading < self._limit - MET_OBJECTIVE):
                out.append(run)
        return out

    def _are_near(self, run: Run[Theta], known: Run[Theta]) -> bool:
        if not run.is_regular or abs(run.objective - known.objective) > MET_OBJECTIVE:
            return False
        return bool(np.abs(self._features_of(run) - self._features_of(known)).max() <= MET_FEATURES)

    def _look_at(self, runs: list[Run[Theta]]) -> None:
        """Keep the features of runs, with their parameters so that identities last."""
        new = [run.theta for run in runs if id(run.theta) not in self._features]
        if new:
            for theta, features in zip(new, self.contest.features(new), strict=True):
                self._features[id(theta)] = (theta, features)

    def _features_of(self, run: Run[Theta]) -> NDArray[np.float64]:
        """Return the features of a run, cached."""
        self._look_at([run])
        return self._features[id(run.theta)][1]

    def _merged(self, runs: list[Run[Theta]]) -> list[Run[Theta]]:
        """Merge runs near the same optimum into the best of them."""
        order = sorted(range(len(runs)), key=lambda i: runs[i].objective)
        ahead = np.diff([runs[i].objective for i in order]) <= MET_OBJECTIVE
        near_another = np.append(ahead, False) | np.append(False, ahead)
        self._look_at([runs[i] for i, is_near in zip(order, near_another, strict=True) if is_near])
        kept: list[int] = []
        met: dict[int, list[tuple[str, int]]] = {}
        for i in order:
            near = [
                j
                for j in kept[-4:]
                if runs[i].objective - runs[j].objective <= MET_OBJECTIVE
                and np.abs(self._features_of(runs[i]) - self._features_of(runs[j])).max() <= MET_FEATURES
            ]
            if near:
                met[near[0]] += [(runs[i].source, runs[i].n_iter), *runs[i].met]
            else:
                kept.append(i)
                met[i] = list(runs[i].met)
        return [replace(runs[i], met=tuple(met[i])) if len(met[i]) > len(runs[i].met) else runs[i] for i in kept]

    def _met(self, runs: list[Run[Theta]], most: int) -> list[Run[Theta]]:
        """Keep the first run of each optimum, and record the others as having reached it."""
        kept: list[Run[Theta]] = []
        for run in runs:
            first = next((i for i, other in enumerate(kept) if not self._distinct([other, run], 2)[1:]), None)
            if first is not None:
                met = (*kept[first].met, (run.source, run.n_iter), *run.met)
                kept[first] = replace(kept[first], met=met)
            elif len(kept) < most:
                kept.append(run)
        return kept

    def _distinct(self, runs: list[Run[Theta]], most: int) -> list[Run[Theta]]:
        return distinct(self.contest, runs, most)

    def _keep(self, ends: list[Run[Theta]]) -> None:
        for run in ends:
            if not run.degenerate and (reason := self.contest.held_back(run)):
                run = replace(run, degenerate=reason)
            (self._finals if run.is_regular else self._degenerate).append(run)
            result = "tolerance reached" if run.converged else "iteration limit reached"
            report_start(
                len(self._finals) + len(self._degenerate),
                run.source,
                self.contest.shown(run.objective),
                result if run.is_regular else f"{result}, excluded as degenerate",
                self.verbose,
                self.contest.shown(min([*self._finals, *self._degenerate], key=lambda known: known.rank).objective),
            )
        self._bank = self._distinct(sorted(self._finals, key=lambda run: run.objective), self.contest.plan.n_kept)

    def _is_enough(self, number: int, improved: int) -> bool:
        """Return whether nearly all runs end at the best, or it came back and was not improved for long."""
        if not self._bank:
            return number - improved >= self.contest.plan.least_barren
        best = self._bank[0].objective
        n_finals = sum(1 + len(run.met) for run in self._finals)
        at_best = [run for run in self._finals if run.objective <= best + self._same(best)]
        hits, plan = sum(1 + len(run.met) for run in at_best), self.contest.plan
        if hits < plan.least_hits:
            return False
        agree, starts = sum(map(_n_starts, at_best)), sum(map(_n_starts, self._finals))
        is_sure = agree >= max(plan.sure_starts[0], plan.sure_starts[1] * starts) and hits >= plan.sure_share * n_finals
        if number >= plan.sure_rounds and improved == 0 and is_sure:
            return True
        have_agreed = hits >= min(plan.agreed_share * n_finals, plan.agreed_hits)
        patience = plan.agreed_rounds if have_agreed else plan.least_rounds
        return number >= patience and number - improved >= patience

    def _found(self) -> Found[Theta]:
        is_regular = bool(self._bank)
        candidates = self._bank if is_regular else self._distinct(sorted(self._degenerate, key=lambda r: r.rank), 4)
        finals = self._finals if is_regular else self._degenerate
        if self.contest.plan.tells_all:
            finals = sorted([*finals, *self._dropped], key=lambda run: run.number)
        records = tuple(
            StartRecord(source, run.objective, n_iter, run.converged)
            for run in finals
            for source, n_iter in ((run.source, run.n_iter), *run.met)
        )
        if not candidates:
            raise ValueError("the objective is not a number for any start: the rows cannot be of this model")
        best = candidates[0]
        n_degenerate = sum(1 + len(run.met) for run in self._degenerate) if is_regular else 0
        raced = (0, 0) if self.contest.plan.tells_all else (self._n_started, self._n_perturbed)
        return Found(best, records, tuple(candidates), self._excluded(best), self._note(), n_degenerate, raced)

    def _note(self) -> str:
        if self.contest.plan.tells_all:
            n = self._n_started
            led = f"Of {n} starts the best {n - len(self._dropped)} were continued." if self._dropped else ""
            return f"{led} {self.contest.note}".strip()
        return raced_note(self._n_started, self._n_perturbed, self.contest.note)

    def _look_beyond_the_rule(self, rows: Any, draws: np.random.Generator) -> None:
        """Perturb the optima without the rule: there may be a maximum that it leaves out."""
        contest, bases = self.contest, [run.theta for run in self._bank]
        runs = entrants(contest.perturbed(rows, bases, contest.plan.n_beyond, draws))
        runs = self._admissible(contest.run(rows, runs, 15, FIRST, free=True))[:8]
        runs = self._admissible(contest.run(rows, runs, 40, ROUGH, free=True))
        ends = contest.run(rows, self._distinct(runs, 4), contest.max_iter, contest.tol, free=True)
        self._free += self._admissible(ends)

    def _admissible(self, runs: list[Run[Theta]]) -> list[Run[Theta]]:
        """Return runs that the rule excludes, best first, except where the likelihood has no maximum."""
        kept = [run for run in runs if not run.is_regular and self.contest.is_admissible(run)]
        return sorted(kept, key=lambda run: run.objective)

    def _excluded(self, best: Run[Theta]) -> Run[Theta] | None:
        """Return the best solution that the rule excludes, if it is better than the best one.

        Runs that the rule constrained are continued without it first: their maximum, if any, is outside it.
        """
        contest = self.contest
        if is_stopped():
            return None
        held = self._distinct(sorted(self._degenerate, key=lambda run: run.objective), 2)
        ends = contest.run(contest.whole, [*self._free, *held], contest.max_iter, contest.tol, free=True)
        better = (end for end in self._admissible(ends) if end.objective < best.objective - self._same(best.objective))
        return next(better, None)


def same_optimum(objective: float, constant: float) -> float:
    """Return the largest difference of two objectives that count as the same optimum."""
    shown = abs(objective + constant) if np.isfinite(objective) else 1.0
    return SAME_OPTIMUM * max(shown, 1.0)


def distinct(contest: Contest[Theta], runs: Sequence[Run[Theta]], most: int) -> list[Run[Theta]]:
    """Take the first run of each optimum, in the order given."""
    if not runs:
        return []
    features = contest.features([run.theta for run in runs])
    kept: list[int] = []
    for i, run in enumerate(runs):
        if len(kept) == most:
            break
        near = (
            abs(run.objective - runs[j].objective) <= same_optimum(run.objective, contest.constant)
            and np.abs(features[i] - features[j]).max() <= DISTINCT_FEATURES
            for j in kept
        )
        if not any(near):
            kept.append(i)
    return [runs[i] for i in kept]


def of_all_rows(found: Found[Theta], share: float, n_sampled: int, n_all: int, noun: str) -> Found[Theta]:
    """Rescale the result of a race on a sample to the weight of all rows."""

    def told(run: Run[Theta]) -> Run[Theta]:
        return replace(run, objective=run.objective / share, is_whole=False, path=())

    note = found.note
    if n_sampled < n_all:
        note += (
            f" All of it on a sample of {n_sampled} of {n_all} {noun}, scaled to the weight of all; the optima were "
            "continued on all."
        )
    records = tuple(replace(record, objective=record.objective / share) for record in found.records)
    excluded = None if found.excluded is None else told(found.excluded)
    optima = tuple(map(told, found.optima))
    return replace(found, best=optima[0], records=records, optima=optima, excluded=excluded, note=note)


def followed(contest: Contest[Theta], found: Found[Theta], ends: Sequence[Run[Theta]]) -> Found[Theta]:
    """Update the result after its optima were continued to `ends`, with the starts that reached them.

    An optimum that was only a plateau may move to a solution that the rule excludes.
    """
    constant = contest.constant
    moved = list(zip(found.optima, ends, strict=True))
    order = sorted(ends, key=lambda end: end.rank)
    best, excluded = order[0], found.excluded
    if excluded is not None and excluded.objective >= best.objective - same_optimum(best.objective, constant):
        excluded = None
    records = []
    for record in found.records:
        near = (
            end for run, end in moved if abs(record.objective - run.objective) <= same_optimum(run.objective, constant)
        )
        end = next(near, None)
        if end is None:
            records.append(record)
        elif end.is_regular == best.is_regular:
            records.append(replace(record, objective=end.objective))
    optima = distinct(contest, [end for end in order if end.is_regular == best.is_regular], 4)
    return replace(found, best=best, records=tuple(records), optima=tuple(optima), excluded=excluded)
