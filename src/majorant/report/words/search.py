"""Sentences about the starts of a fit, each supported by its numbers."""

from __future__ import annotations

from majorant._numbers import article
from majorant.report import numbers
from majorant.report.html import escaped
from majorant.report.words.grammar import capital, chance, counted, in_prose, listed, one_in, opening, verb
from majorant.results.certificate import LOOSE, Certificate, certificate_of
from majorant.search.record import SearchReport, named

CLOSE = 0.01
TIGHT = 0.2
NEARLY_ALL = 0.9
CONCLUSION = "<b>What to conclude:</b> "


def hit_rate(search: SearchReport) -> float:
    """Return the share of the starts that reached the best optimum."""
    return search.n_hits / search.n_starts


def relative(search: SearchReport, distance: float) -> float | None:
    """Return the distance from the best as a share of it; None if the best is zero or a logarithm."""
    return None if search.best == 0 or search.is_logarithm else distance / abs(search.best)


def is_close(search: SearchReport, distance: float) -> bool:
    """Return whether a value is within 1 % of the best; for log-likelihoods, within 1."""
    share = relative(search, distance)
    return distance <= 1 if share is None and search.best != 0 else share is not None and share <= CLOSE


def others_came_close(search: SearchReport) -> bool:
    """Return whether nine tenths of the starts that missed the best ended close to it."""
    missed = search.optima[1:]
    close = sum(o.n_hits for o in missed if is_close(search, o.distance))
    return bool(missed) and close >= NEARLY_ALL * sum(o.n_hits for o in missed)


def is_proved(search: SearchReport) -> bool:
    """Return whether a bound on every solution proves that the best start is optimal."""
    certificate = certificate_of(search)
    return certificate is not None and search.bound_on == "solution" and certificate.proved


def luck(search: SearchReport) -> str:
    """State how much the result depends on the start, as a clause without capital letter or full stop."""
    if search.n_starts == 1:
        return f"with one start {_of_one(search)}"
    if search.n_distinct == 1:
        return f"no {search.noun} found anything else"
    if search.is_chance_find:
        return "it may not be the best there is"
    if search.n_perturbations:
        return "none found a better one"
    alone = search.n_starts - search.n_hits == 1
    if others_came_close(search):
        return "the other came close" if alone else "nearly all the others came close"
    if hit_rate(search) < 0.5:
        return "a single start would probably have missed it"
    return "the other stopped short of it" if alone else "the others stopped short of it"


def _of_one(search: SearchReport) -> str:
    """State what is known from a single finished start: nothing, unless a proof or a bound limits others."""
    if search.certain:
        return "no other can end better"
    if search.proved_bound is None and search.raced_in_words and search.can_be_longer:
        return "effort='best' tells whether it is found again"
    if search.proved_bound is None:
        return "whether another would end better is unknown"
    return "no other can end beyond the proved bound"


def _only_one(search: SearchReport) -> str:
    """Write the clause that one start was finished, chosen from how many."""
    if not search.raced_in_words:
        return "Only one start was run to convergence"
    return f"Only the best of {descents(sum(search.raced), search.raced[1])} was run to convergence"


def descents(n: int, n_perturbations: int) -> str:
    """Return the numbers of starts and perturbations in words."""
    return listed([counted(m, noun) for m, noun in named(n, n_perturbations)])


def of_perturbations(search: SearchReport) -> str:
    """State how many of the starts and perturbations reached the best optimum, as a clause."""
    made = descents(search.n_starts, search.n_perturbations)
    if search.n_distinct == 1:
        return f"{capital(made)} all ended at this optimum"
    hits = "Only one" if search.n_hits == 1 else opening(search.n_hits)
    return f"{hits} of {in_prose(search.n_starts)} runs ({made.replace(' and ', ', ')}) reached this optimum"


def _found(search: SearchReport) -> tuple[str, str, bool]:
    """Return how many starts reached the best optimum, what that says of luck, and whether the latter is the news."""
    n, hits = search.n_starts, search.n_hits
    if n == 1:
        return _only_one(search), _of_one(search), False
    if search.n_perturbations:
        return of_perturbations(search), "" if search.n_distinct == 1 else luck(search), True
    if search.n_distinct == 1:
        return f"{'Both' if n == 2 else f'All {in_prose(n)}'} starts reached the same optimum", "", False
    reached = "Only one" if hits == 1 else opening(hits)
    is_luck = others_came_close(search) or hit_rate(search) < 0.5
    return f"{reached} of {in_prose(n)} starts reached the best optimum", luck(search), is_luck


def headline(search: SearchReport) -> str:
    """State how many starts reached the best optimum, in one sentence."""
    found, said, _ = _found(search)
    return f"{found}; {said}." if said else f"{found}."


def agreement(search: SearchReport) -> str:
    """State the same for the introduction, its news in <strong>."""
    found, said, is_luck = _found(search)
    if said and is_luck:
        return f"{found}; <strong>{said}</strong>."
    return f"<strong>{found}</strong>{f'; {said}' if said else ''}."


def notes(search: SearchReport, objective: float, dots_for: int, why_certain: str = "") -> list[str]:
    """Explain the figure, what follows from it, and what deserves attention.

    Parameters
    ----------
    search : SearchReport
        The search report of the fit.
    objective : float
        Objective of the fit, which may be better than that of the best start.
    dots_for : int
        Number of starts per dot.
    why_certain : str
        Why no other start can end better, if that is known without a bound.
    """
    return [
        _how_to_read(search, dots_for),
        *_optima(search),
        f"{CONCLUSION}{why_certain[:1].lower()}{why_certain[1:]}" if why_certain else _conclusion(search),
        *_after_the_starts(search, objective),
        *([f'<span class="quiet">Proved bound: {escaped(search.why_no_bound)}</span>'] if search.why_no_bound else []),
        *(
            []
            if why_certain or not search.note
            else [f'<span class="quiet">{escaped(capital(search.note.rstrip(".")))}.</span>']
        ),
    ]


def figure_label(search: SearchReport) -> str:
    """State what the figure shows, as text."""
    best = f"{search.objective_name} of {numbers.objective(search.best, search.objective_name)}"
    if search.n_starts == 1:
        return f"One start, which reached {article(best)} {best}"
    made = f"{search.n_starts} starts"
    if search.n_perturbations:
        made = descents(search.n_starts, search.n_perturbations)
    return (
        f"Dot plot of the {search.objective_name} reached by each of {made}: "
        f"{search.n_hits} reached the best, {article(best)} {best}"
    )


def distance_title(search: SearchReport) -> str:
    """Return the title of the axis of distances."""
    return f"{search.objective_name} {'above' if search.sense == 'min' else 'below'} the best"


def _how_to_read(search: SearchReport, dots_for: int) -> str:
    unfinished = sum(not s.converged for s in search.starts)
    noun = search.noun
    dot = f"Each dot is one {noun}" if dots_for == 1 else f"Each dot is up to {in_prose(dots_for)} {noun}s"
    text = f"<b>{dot}</b>, continued to convergence."
    if unfinished:
        were = f"{in_prose(unfinished)} of {in_prose(search.n_starts)} {noun}s"
        text = f"<b>{dot}</b>. {capital(were)} stopped at the limit of iterations, before converging."
    if search.is_cut_short:
        stopped = f"{in_prose(unfinished)} {verb(unfinished, 'was', 'were')}"
        text = f"<b>{dot}</b>. Only the best was run to convergence, {stopped} stopped early."
    if search.n_starts == 1:
        return text
    if search.n_perturbations:
        text += " A perturbation moves parts of the best solution and descends again: it is not an independent start."
    extreme = "lowest" if search.sense == "min" else "highest"
    return f"{text} Dots at the right reached the {extreme} {escaped(search.objective_name)} seen."


def _optima(search: SearchReport) -> list[str]:
    others = search.optima[1:]
    if not others:
        return []
    second, worst = others[0].distance, others[-1].distance
    side = "above" if search.sense == "min" else "below"
    text = f"There are <b>{in_prose(search.n_distinct)} distinct {search.ends[1]}</b>."
    if len(others) == 1:
        return [f"{text} The second is {_both(search, second)} {side} the best."]
    return [f"{text} The second is {_both(search, second)} {side} the best, the worst {_both(search, worst)}."]


def _both(search: SearchReport, distance: float) -> str:
    share = relative(search, distance)
    return numbers.distance(distance) + (f" ({numbers.percent(share, 2)})" if share is not None else "")


def _conclusion(search: SearchReport) -> str:
    n, rate = search.n_starts, hit_rate(search)
    if is_proved(search):
        return f"{CONCLUSION}no search can find a better solution, which is proved: see the certificate."
    if n == 1:
        return (
            f"{CONCLUSION}{'little' if search.raced_in_words else 'nothing'} yet. "
            "More starts would show whether this optimum is reached again or a better one is found."
        )
    if search.n_perturbations:
        return f"{CONCLUSION}{_of_the_best(search)}"
    if search.n_distinct == 1:
        if n < 5:
            return f"{CONCLUSION}nothing better was found, but {counted(n, 'start')} are few to judge by."
        return (
            f"{CONCLUSION}nothing better was found, and the answer did not depend on where a start began. "
            "An optimum that no start came near is not ruled out."
        )
    if search.n_hits == 1:
        return (
            f"{CONCLUSION}nothing better was found, but the best was found only once. "
            "A still better optimum may exist; more starts would tell."
        )
    miss = (1 - rate) ** 10
    finds = f"{CONCLUSION}judging by these starts, one start finds the best about {chance(rate)}"
    if miss >= 0.005:
        return f"{finds}; ten starts would all miss it {one_in(miss) if miss < 0.18 else 'about ' + chance(miss)}."
    return f"{finds}; ten starts would hardly ever all miss it."


def _of_the_best(search: SearchReport) -> str:
    """State what the perturbations after the best solution was found say about it."""
    after = search.n_perturbations_after_best
    if after:
        said = f"{counted(after, 'perturbation')} after the best solution was found gave nothing better."
    else:
        said = "no perturbation of the best solution was run to convergence."
    if search.is_chance_find:
        once = "It was found only once, so it may not be the best"
        longer = "; <code>effort='best'</code> searches longest" if search.can_be_longer else ""
        return f"{said} {once}{longer}."
    return f"{said} An optimum that no perturbation came near is not ruled out."


def _after_the_starts(search: SearchReport, objective: float) -> list[str]:
    gain = (search.best - objective) * (1 if search.sense == "min" else -1)
    if search.note or gain <= 1e-6 * abs(search.best):
        return []
    return [f"The fit went on from the best start and gained another {numbers.distance(gain)}."]


def excludes_much(search: SearchReport, gap: float) -> bool:
    """Return whether a bound with this gap is informative; a share near 1 could not rise much anyway."""
    return gap <= (LOOSE if search.sense == "max" and not search.is_logarithm else TIGHT)


def certificate_headline(search: SearchReport, gap: float | None, gap_text: str) -> str:
    """State what the proved bound leaves open, in one sentence; `gap_text` is the gap in words."""
    so = ", and that is proved, not estimated"
    if gap is None:
        return "The proved bound is too loose to say how good this fit is."
    if gap == 0:
        return f"No better fit exists{so}."
    within = f"within {gap_text} of the best possible"
    if is_proved(search):
        return f"This fit is proved optimal: no other is better by more than {gap_text}."
    if excludes_much(search, gap):
        return f"This fit is {within}{so}."
    return f"The proved bound is loose: this fit is only known to be {within}."


def certificate_notes(search: SearchReport, proof: Certificate, parts: str) -> list[str]:
    """Explain a bound; `parts` is a solution's parts in words ("three clusters")."""
    objective, name = proof.objective, escaped(search.objective_name)
    kind = f"solution with {parts}" if search.bound_on == "solution" else escaped(search.bound_on)
    bound = numbers.bound(proof.bound, search.objective_name, objective, search.sense, proof.difference)
    side = "below" if search.sense == "min" else "above"
    first = f"No {kind} has {article(name)} {name} {side} <b>{bound}</b>."
    first += f" The fit reached {numbers.objective(objective, search.objective_name, apart=proof.difference)}."
    if not proof.difference:
        return [f"{first} This is the best possible."]
    if is_proved(search):
        return [first, "The two differ by no more than rounding and the tolerance of the proof."]
    return [
        first,
        "The best possible lies between the two. <b>The bound may be what is loose:</b> "
        "nothing here says that a better fit exists.",
    ]
