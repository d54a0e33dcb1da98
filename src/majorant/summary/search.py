"""The search report in words and as a table."""

from __future__ import annotations

from majorant._numbers import NumberFormat, counted, number_format, objective_format, percent
from majorant.results.certificate import certificate_of
from majorant.search import SearchReport
from majorant.search.record import in_words
from majorant.summary.summary import Block
from majorant.summary.table import Column, Table

MOST_OPTIMA = 6
STOPPED = "The search was stopped before its end: this is the best solution so far, and a better one may exist."


def search_block(search: SearchReport) -> Block:
    """Build the first block of every summary: starts, distinct optima, how many reached each, and any bound."""
    if search.n_starts == 0:
        return Block("SEARCH", "no starts", ("Nothing was recorded of how this fit was found.",))
    stopped = [STOPPED] if search.is_stopped else []
    sentences = [*stopped, luck_sentence(search), *_limit_sentences(search), bound_sentence(search)]
    sentences += [search.note] if search.note else []
    if search.n_starts == 1:
        return Block("SEARCH", _note(search), tuple(sentences))
    more = [_more_sentence(search)] if search.n_distinct > MOST_OPTIMA else []
    return Block("SEARCH", _note(search), (optima_table(search), *more, *sentences))


def _format(search: SearchReport) -> NumberFormat:
    """Return the number format that shows the best objective and its difference from the second."""
    best = objective_format(search.objective_name, [search.best])
    gap = number_format([search.gap_to_second or 0.0], best.decimals)
    return best if best.powers or gap.powers else gap


def optima_table(search: SearchReport) -> Table:
    """Build a table of distinct optima, best first: objective, distance from the best, starts."""
    decimals, shown = _format(search).decimals, search.optima[:MOST_OPTIMA]
    distances = [optimum.distance if i else None for i, optimum in enumerate(shown)]
    columns = [
        Column(search.objective_name, [o.objective for o in shown], decimals, "objective", min_width=9),
        Column(_worse(search), distances, decimals, "distance", min_width=9),
        Column(f"{search.noun}s", [o.n_hits for o in shown]),
    ]
    return Table("optima", columns, bars=columns[-1].name)


def best_sentences(search: SearchReport) -> list[str]:
    """Return sentences for the command line: the best objective, how many starts reached it, and the second optimum."""
    style = _format(search)
    name = search.objective_name
    best = f"Best {name} {style.text(search.best)}"
    if search.n_starts == 1:
        return [f"{best}, from {f'the best of {search.raced_in_words}' if search.raced_in_words else 'one start'}."]
    if search.n_hits == search.n_starts and search.n_perturbations:
        return [f"{best}, reached by {_made(search)}: by all that {_all_of(search)}."]
    if search.n_hits == search.n_starts:
        all_of_them = "both" if search.n_starts == 2 else f"all {search.n_starts}"
        return [f"{best}, reached by {all_of_them} starts."]
    second = search.optima[1]
    runs = f"runs ({_made(search)} of the best so far)" if search.n_perturbations else "starts"
    stopped = f"{in_words(second.n_hits, second.n_perturbations)} stopped there"
    return [
        f"{best}, reached by {search.n_hits} of {search.n_starts} {runs}.",
        f"The second {search.ends[0]} is {style.text(second.distance)} {_worse(search)}; {stopped}.",
    ]


def luck_sentence(search: SearchReport) -> str:
    """State whether a single start would probably have missed the best optimum."""
    if search.certain:
        return search.certain
    if search.n_starts == 1 and search.raced_in_words:
        return f"Of {search.raced_in_words}, only the best was run to convergence{_longer(search)}."
    if search.n_starts == 1:
        rest = ": whether another would end better is unknown" if search.proved_bound is None else ""
        return f"Only one start was run to convergence{rest}."
    if search.n_perturbations:
        return _perturbation_sentence(search)
    if search.n_hits == search.n_starts:
        return "Every start reached the best optimum."
    if 2 * search.n_hits < search.n_starts:
        return "A single start would probably have missed the best optimum."
    missed = percent(1 - search.n_hits / search.n_starts)
    return f"A single start would have missed the best optimum {missed} of the time."


def _perturbation_sentence(search: SearchReport) -> str:
    """State what perturbations of the best solution found; they are not independent starts."""
    if search.n_hits == search.n_starts:
        return f"{counted(search.n_perturbations, 'perturbation')} of the best optimum returned to it."
    after = search.n_perturbations_after_best
    if after:
        said = f"{counted(after, 'perturbation')} after the best optimum was found gave nothing better."
    else:
        said = "No perturbation of the best optimum was run to convergence."
    once = f" It was found only once and may not be the best{_longer(search)}."
    return f"{said}{once}" if search.is_chance_find else said


def _longer(search: SearchReport) -> str:
    return "; effort='best' searches longest" if search.can_be_longer else ""


def _all_of(search: SearchReport) -> str:
    """Return what sets the runs apart that count."""
    n = search.n_degenerate
    return f"ended regular ({n} more did not)" if n else "were run to convergence"


def _made(search: SearchReport) -> str:
    return in_words(search.n_starts, search.n_perturbations)


def bound_sentence(search: SearchReport) -> str:
    """State the proved bound, rounded to the safe side, or that there is none."""
    certificate = certificate_of(search)
    if certificate is None:
        return f"Provable bound: {search.why_no_bound or 'not computed.'}"
    return f"Provable bound: {certificate.sentence[0].lower()}{certificate.sentence[1:]}"


def _note(search: SearchReport) -> str:
    if search.n_starts == 1:
        return f"best of {search.raced_in_words}" if search.raced_in_words else "1 start"
    distinct = counted(search.n_distinct, *(f"distinct {end}" for end in search.ends))
    note = f"{_made(search)}, {distinct}, "
    if search.n_perturbations:
        is_all = search.n_hits == search.n_starts
        note += (
            f"found by all that {_all_of(search)}"
            if is_all and search.n_degenerate
            else "found by all"
            if is_all
            else f"best found by {in_words(search.n_hits, search.optima[0].n_perturbations)}"
        )
    else:
        note += f"best found {counted(search.n_hits, 'time')}"
    if search.gap_to_second is not None:
        note += f", second {_format(search).text(search.gap_to_second)} {_worse(search)}"
    return note


def _worse(search: SearchReport) -> str:
    return "higher" if search.sense == "min" else "lower"


def _more_sentence(search: SearchReport) -> str:
    others = search.optima[MOST_OPTIMA:]
    starts = in_words(sum(o.n_hits for o in others), sum(o.n_perturbations for o in others))
    farthest = _format(search).text(others[-1].distance)
    return f"{len(others)} more, up to {farthest} {_worse(search)}, from {starts}."


def _limit_sentences(search: SearchReport) -> list[str]:
    stopped = sum(not s.converged for s in search.starts)
    if stopped == 0:
        return []
    if search.is_cut_short:
        cut = f"{stopped} of {counted(search.n_starts, 'run')} {'was' if stopped == 1 else 'were'} stopped early"
        return [f"{cut}: only the best was run to convergence."]
    return [f"{stopped} of {counted(search.n_starts, search.noun)} stopped at the iteration limit, not at an optimum."]
