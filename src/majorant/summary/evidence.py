"""How is the evidence of a fit put into words and into a table?"""

from __future__ import annotations

from majorant._numbers import NumberFormat, counted, number_format, objective_format, percent
from majorant.evidence import Certificate, Evidence
from majorant.evidence.records import named
from majorant.summary.summary import Block
from majorant.summary.table import Column, Table

MOST_OPTIMA = 6


def evidence_block(evidence: Evidence) -> Block:
    """The block that opens every summary: starts, distinct optima, hits of the best, the second, and any bound."""
    if evidence.n_starts == 0:
        return Block("EVIDENCE", "no starts", ("Nothing was recorded of how this fit was found.",))
    sentences = [luck_sentence(evidence), *_limit_sentences(evidence), bound_sentence(evidence)]
    sentences += [evidence.note] if evidence.note else []
    if evidence.n_starts == 1:
        return Block("EVIDENCE", _note(evidence), tuple(sentences))
    more = [_more_sentence(evidence)] if evidence.n_distinct > MOST_OPTIMA else []
    return Block("EVIDENCE", _note(evidence), (optima_table(evidence), *more, *sentences))


def _format(evidence: Evidence) -> NumberFormat:
    """Decimals that show the best objective and tell it from the second."""
    best = objective_format(evidence.objective_name, [evidence.best])
    gap = number_format([evidence.gap_to_second or 0.0], best.decimals)
    return best if best.powers or gap.powers else gap


def optima_table(evidence: Evidence) -> Table:
    """One row a distinct optimum, best first: its objective, how much worse it is, how many starts stopped there."""
    decimals = _format(evidence).decimals
    columns = [
        Column(evidence.objective_name, decimals, min_width=9, key="objective"),
        Column(_worse(evidence), decimals, min_width=9, key="distance"),
        Column(f"{evidence.noun}s"),
    ]
    rows = [(o.objective, o.distance if i else None, o.n_hits) for i, o in enumerate(evidence.optima[:MOST_OPTIMA])]
    return Table("optima", columns, rows, bars=columns[-1].name)


def best_sentences(evidence: Evidence) -> list[str]:
    """The best objective with its hits, and the second optimum: what the command line says of a fit."""
    style = _format(evidence)
    name = evidence.objective_name
    best = f"Best {name} {style.text(evidence.best)}"
    if evidence.n_starts == 1:
        return [f"{best}, from one start."]
    if evidence.n_hits == evidence.n_starts and evidence.n_kicks:
        return [f"{best}, reached by {_made(evidence)}: by all that were followed."]
    if evidence.n_hits == evidence.n_starts:
        all_of_them = "both" if evidence.n_starts == 2 else f"all {evidence.n_starts}"
        return [f"{best}, reached by {all_of_them} starts."]
    first, second = evidence.optima[:2]
    if evidence.n_kicks:
        reached = f"{_descents(first.n_hits, first.n_kicks)}, of {_made(evidence)}"
    else:
        reached = f"{evidence.n_hits} of {evidence.n_starts} starts"
    stopped = f"{_descents(second.n_hits, second.n_kicks)} stopped there"
    return [
        f"{best}, reached by {reached}.",
        f"The second {evidence.ends[0]} is {style.text(second.distance)} {_worse(evidence)}; {stopped}.",
    ]


def luck_sentence(evidence: Evidence) -> str:
    """Whether a single start would probably have missed the best optimum."""
    if evidence.n_starts == 1:
        rest = ": nothing tells whether another would end better" if evidence.lower_bound is None else ""
        return f"Only one start was followed to its end{rest}."
    if evidence.n_kicks:
        return _kick_sentence(evidence)
    if evidence.n_hits == evidence.n_starts:
        return "Every start reached the best optimum."
    if 2 * evidence.n_hits < evidence.n_starts:
        return "A single start would probably have missed the best optimum."
    missed = percent(1 - evidence.n_hits / evidence.n_starts)
    return f"A single start would have missed the best optimum {missed} of the time."


def _kick_sentence(evidence: Evidence) -> str:
    """What kicks out of the best solution found; they say nothing about independent starts."""
    if evidence.n_hits == evidence.n_starts:
        return f"{counted(evidence.n_kicks, 'kick')} out of the best optimum led back to it."
    after = evidence.n_kicks_after_best
    if after:
        said = f"{counted(after, 'kick')} after the best optimum was found led no further."
    else:
        said = "No kick out of the best optimum was followed to its end."
    return f"{said} It was met only once and may not be the best: raise n_init." if evidence.is_chance_find else said


def _descents(n: int, n_kicks: int) -> str:
    return " and ".join(counted(m, noun) for m, noun in named(n, n_kicks))


def _made(evidence: Evidence) -> str:
    return _descents(evidence.n_starts, evidence.n_kicks)


def bound_sentence(evidence: Evidence) -> str:
    """The provable bound, rounded so that what is printed is still proved, or that there is none."""
    if evidence.lower_bound is None:
        return "Provable bound: not computed."
    name = evidence.objective_name
    unit = "nats" if evidence.is_logarithm else ""
    certificate = Certificate(
        evidence.lower_bound, evidence.best, "", name, evidence.sense, solution=evidence.bound_on, unit=unit
    )
    return f"Provable bound: {certificate.sentence[0].lower()}{certificate.sentence[1:]}"


def _note(evidence: Evidence) -> str:
    if evidence.n_starts == 1:
        return "1 start"
    distinct = counted(evidence.n_distinct, *(f"distinct {end}" for end in evidence.ends))
    note = f"{_made(evidence)}, {distinct}, "
    if evidence.n_kicks:
        is_all = evidence.n_hits == evidence.n_starts
        note += "hit by all" if is_all else f"best hit by {_descents(evidence.n_hits, evidence.optima[0].n_kicks)}"
    else:
        note += f"best hit {counted(evidence.n_hits, 'time')}"
    if evidence.gap_to_second is not None:
        note += f", second {_format(evidence).text(evidence.gap_to_second)} {_worse(evidence)}"
    return note


def _worse(evidence: Evidence) -> str:
    return "higher" if evidence.sense == "min" else "lower"


def _more_sentence(evidence: Evidence) -> str:
    others = evidence.optima[MOST_OPTIMA:]
    starts = _descents(sum(o.n_hits for o in others), sum(o.n_kicks for o in others))
    farthest = _format(evidence).text(others[-1].distance)
    return f"{len(others)} more, up to {farthest} {_worse(evidence)}, from {starts}."


def _limit_sentences(evidence: Evidence) -> list[str]:
    stopped = sum(not s.converged for s in evidence.starts)
    if stopped == 0:
        return []
    if evidence.is_cut_short:
        cut = f"{stopped} of {evidence.n_starts} descents were cut short of an optimum"
        return [f"{cut}: only the best was followed to its end."]
    return [
        f"{stopped} of {counted(evidence.n_starts, evidence.noun)} stopped at the iteration limit, not at an optimum."
    ]
