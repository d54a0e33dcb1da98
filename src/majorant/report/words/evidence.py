"""What the starts of a fit allow to be said, and nothing beyond it."""

from __future__ import annotations

from majorant._numbers import article
from majorant.evidence.certificate import LOOSE
from majorant.evidence.records import Evidence, named
from majorant.report import numbers
from majorant.report.html import escaped
from majorant.report.words.grammar import capital, chance, counted, in_prose, listed, one_in, opening

CLOSE = 0.01
TIGHT = 0.2
NEARLY_ALL = 0.9
CONCLUSION = "<b>What to conclude:</b> "


def hit_rate(evidence: Evidence) -> float:
    """Share of the starts that reached the best optimum."""
    return evidence.n_hits / evidence.n_starts


def relative(evidence: Evidence, distance: float) -> float | None:
    """A distance from the best as a share of it; None if the best is zero, or a logarithm, whose zero means nothing."""
    return None if evidence.best == 0 or evidence.is_logarithm else distance / abs(evidence.best)


def is_close(evidence: Evidence, distance: float) -> bool:
    """Within 1 % of the best; for the logarithm of a likelihood, within 1."""
    share = relative(evidence, distance)
    return distance <= 1 if share is None and evidence.best != 0 else share is not None and share <= CLOSE


def others_came_close(evidence: Evidence) -> bool:
    """Whether nine tenths of the starts that missed the best ended close to it."""
    missed = evidence.optima[1:]
    close = sum(o.n_hits for o in missed if is_close(evidence, o.distance))
    return bool(missed) and close >= NEARLY_ALL * sum(o.n_hits for o in missed)


def luck(evidence: Evidence) -> str:
    """What the starts say about luck, as a clause without a capital letter or a full stop."""
    if evidence.n_starts == 1:
        return f"with one start {_of_one(evidence)}"
    if evidence.n_distinct == 1:
        return f"no {evidence.noun} found anything else"
    if evidence.is_chance_find:
        return "it may not be the best there is"
    if evidence.n_kicks:
        return "none led beyond it"
    alone = evidence.n_starts - evidence.n_hits == 1
    if others_came_close(evidence):
        return "the other came close" if alone else "nearly all the others came close"
    if hit_rate(evidence) < 0.5:
        return "a single start would probably have missed it"
    return "the other stopped short of it" if alone else "the others stopped short of it"


def _of_one(evidence: Evidence) -> str:
    """What is known where one start was made: nothing, unless a bound says how much better any other could end."""
    if evidence.lower_bound is None:
        return "nothing can be said about luck"
    return "no other can end beyond the proved bound"


def descents(n: int, n_kicks: int) -> str:
    """Starts and kicks with their counts, in prose."""
    return listed([counted(m, noun) for m, noun in named(n, n_kicks)])


def of_kicks(evidence: Evidence) -> str:
    """Which of the starts and kicks reached the best optimum, as a clause: kicks are not independent starts."""
    made = descents(evidence.n_starts, evidence.n_kicks)
    if evidence.n_distinct == 1:
        return f"{capital(made)} all ended at this optimum"
    reached = descents(evidence.n_hits, evidence.optima[0].n_kicks)
    return f"Of {made}, {reached} reached this optimum"


def headline(evidence: Evidence) -> str:
    """One sentence on how many starts reached the best optimum."""
    n, hits = evidence.n_starts, evidence.n_hits
    if n == 1:
        return f"Only one start was followed to its end; {_of_one(evidence)}."
    if evidence.n_kicks:
        return f"{of_kicks(evidence)}." if evidence.n_distinct == 1 else f"{of_kicks(evidence)}; {luck(evidence)}."
    if evidence.n_distinct == 1:
        return f"{'Both' if n == 2 else f'All {in_prose(n)}'} starts reached the same optimum."
    if hits == 1:
        return f"Only one of {in_prose(n)} starts reached the best optimum; {luck(evidence)}."
    return f"{opening(hits)} of {in_prose(n)} starts reached the best optimum; {luck(evidence)}."


def agreement(evidence: Evidence) -> str:
    """The same for the lede: a clause with its emphasis in <strong>."""
    n, hits = evidence.n_starts, evidence.n_hits
    if n == 1:
        return f"<strong>Only one start was followed to its end</strong>; {_of_one(evidence)}."
    if evidence.n_kicks and evidence.n_distinct == 1:
        return f"<strong>{of_kicks(evidence)}</strong>."
    if evidence.n_kicks:
        return f"{of_kicks(evidence)}; <strong>{luck(evidence)}</strong>."
    if evidence.n_distinct == 1:
        return f"<strong>{'Both' if n == 2 else f'All {in_prose(n)}'} starts reached the same optimum</strong>."
    found = f"{opening(hits)} of {numbers.integer(n)} starts found this optimum"
    if others_came_close(evidence) or hit_rate(evidence) < 0.5:
        return f"{found}; <strong>{luck(evidence)}</strong>."
    return f"<strong>{found}</strong>; {luck(evidence)}."


def notes(evidence: Evidence, objective: float, dots_for: int, why_certain: str = "") -> list[str]:
    """How to read the figure, what to conclude, what to look out for.

    Parameters
    ----------
    evidence : Evidence
        Of the fit.
    objective : float
        Where the fit ended, which may be better than the best start.
    dots_for : int
        How many starts one dot stands for.
    why_certain : str
        Why no better optimum can exist, where that is plain.
    """
    return [
        _how_to_read(evidence, dots_for),
        *_optima(evidence),
        f"{CONCLUSION}{why_certain[:1].lower()}{why_certain[1:]}" if why_certain else _conclusion(evidence),
        *_after_the_starts(evidence, objective),
        *([f'<span class="quiet">{escaped(capital(evidence.note.rstrip(".")))}.</span>'] if evidence.note else []),
    ]


def figure_label(evidence: Evidence) -> str:
    """What the figure shows, as text."""
    best = f"{evidence.objective_name} of {numbers.objective(evidence.best, evidence.objective_name)}"
    if evidence.n_starts == 1:
        return f"One start, which reached {article(best)} {best}"
    made = f"{evidence.n_starts} starts"
    if evidence.n_kicks:
        made = descents(evidence.n_starts, evidence.n_kicks)
    return (
        f"Dot plot of the {evidence.objective_name} reached by each of {made}: "
        f"{evidence.n_hits} reached the best, {article(best)} {best}"
    )


def distance_title(evidence: Evidence) -> str:
    """Title of the axis of distances."""
    return f"{evidence.objective_name} {'above' if evidence.sense == 'min' else 'below'} the best"


def _how_to_read(evidence: Evidence, dots_for: int) -> str:
    unfinished = sum(not s.converged for s in evidence.starts)
    noun = evidence.noun
    dot = f"Each dot is one {noun}" if dots_for == 1 else f"Each dot is up to {in_prose(dots_for)} {noun}s"
    text = f"<b>{dot}</b>, run until it came to rest."
    if unfinished:
        were = f"{in_prose(unfinished)} of {in_prose(evidence.n_starts)} {noun}s"
        text = f"<b>{dot}</b>. {capital(were)} stopped at the limit of iterations, before coming to rest."
    if evidence.is_cut_short:
        text = f"<b>{dot}</b>. Only the best was followed until it came to rest, {in_prose(unfinished)} were cut short."
    if evidence.n_starts == 1:
        return text
    if evidence.n_kicks:
        text += " A kick moves parts of the best solution so far and descends again: it is no independent start."
    extreme = "lowest" if evidence.sense == "min" else "highest"
    return f"{text} Dots at the right reached the {extreme} {escaped(evidence.objective_name)} seen."


def _optima(evidence: Evidence) -> list[str]:
    others = evidence.optima[1:]
    if not others:
        return []
    second, worst = others[0].distance, others[-1].distance
    side = "above" if evidence.sense == "min" else "below"
    text = f"There are <b>{in_prose(evidence.n_distinct)} distinct {evidence.ends[1]}</b>."
    if len(others) == 1:
        return [f"{text} The second is {_both(evidence, second)} {side} the best."]
    return [f"{text} The second is {_both(evidence, second)} {side} the best, the worst {_both(evidence, worst)}."]


def _both(evidence: Evidence, distance: float) -> str:
    share = relative(evidence, distance)
    return numbers.distance(distance) + (f" ({numbers.percent(share, 2)})" if share is not None else "")


def _conclusion(evidence: Evidence) -> str:
    n, rate = evidence.n_starts, hit_rate(evidence)
    if n == 1:
        return (
            f"{CONCLUSION}nothing yet. "
            "More starts would show whether this optimum is reached again or a better one is found."
        )
    if evidence.n_kicks:
        return f"{CONCLUSION}{_of_the_best(evidence)}"
    if evidence.n_distinct == 1:
        if n < 5:
            return f"{CONCLUSION}nothing better was found, but {counted(n, 'start')} are few to judge by."
        return (
            f"{CONCLUSION}nothing better was found, and the answer did not depend on where a start began. "
            "An optimum that no start came near is not ruled out."
        )
    if evidence.n_hits == 1:
        return (
            f"{CONCLUSION}nothing better was found, but the best was met only once. "
            "A still better optimum may exist; more starts would tell."
        )
    miss = (1 - rate) ** 10
    finds = f"{CONCLUSION}judging by these starts, one start finds the best about {chance(rate)}"
    if miss >= 0.005:
        return f"{finds}; ten starts would all miss it {one_in(miss) if miss < 0.18 else 'about ' + chance(miss)}."
    return f"{finds}; ten starts would hardly ever all miss it."


def _of_the_best(evidence: Evidence) -> str:
    """What kicks say of the best solution: only those that came after it was found."""
    after = evidence.n_kicks_after_best
    if after:
        said = f"{counted(after, 'kick')} after the best solution was found led to nothing better."
    else:
        said = "no kick out of the best solution was followed to its end."
    if evidence.is_chance_find:
        return f"{said} It was met only once, so it may not be the best: raise <code>n_init</code> until it comes back."
    return f"{said} An optimum that no kick came near is not ruled out."


def _after_the_starts(evidence: Evidence, objective: float) -> list[str]:
    gain = (evidence.best - objective) * (1 if evidence.sense == "min" else -1)
    if evidence.note or gain <= 1e-6 * abs(evidence.best):
        return []
    return [f"The fit went on from the best start and gained another {numbers.distance(gain)}."]


def excludes_much(evidence: Evidence, room: float) -> bool:
    """Whether a bound that leaves so much room says something: a share cannot rise far above a good one anyway."""
    return room <= (LOOSE if evidence.sense == "max" and not evidence.is_logarithm else TIGHT)


def certificate_headline(evidence: Evidence, room: float | None, room_text: str, proviso: str = "") -> str:
    """One sentence on what the proved bound leaves open; `room_text` is the room in words.

    `proviso` is what the bound is up to, as the end of a sentence.
    """
    so = proviso or ", and that is proved, not estimated"
    if room is None:
        return "The proved bound is too loose to say how good this fit is."
    if room == 0:
        return f"No better fit exists{so}."
    within = f"within {room_text} of the best possible"
    if excludes_much(evidence, room):
        return f"This fit is {within}{so}."
    return f"The proved bound is loose: this fit is only known to be {within}."


def certificate_notes(
    evidence: Evidence, objective: float, room: float | None, parts: str, proviso: str = ""
) -> list[str]:
    """`parts` is what a solution consists of ("three clusters"), `proviso` what the bound is up to."""
    if evidence.lower_bound is None:
        return []
    name = escaped(evidence.objective_name)
    kind = f"solution with {parts}" if evidence.bound_on == "solution" else escaped(evidence.bound_on)
    if evidence.sense == "min":
        bound = numbers.bound_below(evidence.lower_bound, evidence.objective_name, objective)
        first = f"No {kind} has {article(name)} {name} below <b>{bound}</b>{proviso}."
    else:
        bound = numbers.bound_above(evidence.lower_bound, evidence.objective_name, objective)
        first = f"No {kind} has {article(name)} {name} above <b>{bound}</b>{proviso}."
    first += f" The fit reached {numbers.objective(objective, evidence.objective_name)}."
    if room == 0.0:
        return [first, "The two agree to the last digit shown: this is the best possible."]
    return [
        first,
        "The best possible lies between the two. <b>The bound may be what is loose:</b> "
        "nothing here says that a better fit exists.",
    ]
