"""Marks of components: each of up to three components has its own colour and shape."""

from __future__ import annotations

from collections.abc import Iterable

from majorant.report.charts.svg import Canvas, Point, coordinate, path_of

N_COLOURS = 3
SHADES = 5
SHAPE_NAMES = ("circle", "diamond", "triangle")


def component_class(component: int, n_components: int, spoken_of: int | None = None) -> str:
    """Return the suffix of the colour classes of a component, counted from 0.

    Up to three components have colours; with more, only `spoken_of`, the one named in the text, has the first colour.
    """
    if n_components <= N_COLOURS:
        return str(component + 1)
    return "1" if component == spoken_of else "mid"


def shaded_class(component: int, n_components: int, probability: float, spoken_of: int | None = None) -> str:
    """Return the suffix of a row's colour class, in five steps: greyer for less probable components."""
    colour = component_class(component, n_components, spoken_of)
    if colour == "mid" or n_components == 1:
        return colour
    step = round(SHADES * (probability - 1 / n_components) / (1 - 1 / n_components))
    return "mid" if step <= 0 else colour if step >= SHADES else f"{colour}-{step}"


def shape(component: int, x: float, y: float, radius: float) -> str:
    """Return path data of a component's mark: circle, diamond or triangle."""
    c = coordinate
    if component % N_COLOURS == 0:
        r, across = c(radius), c(2 * radius)
        return f"M{c(x - radius)} {c(y)}a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0 -{across} 0z"
    if component % N_COLOURS == 1:
        reach = radius * 1.24
        r, back = c(reach), c(-reach)
        return f"M{c(x)} {c(y - reach)}l{r} {r}l{back} {r}l{back} {back}z"
    return f"M{c(x)} {c(y - 1.25 * radius)}l{c(1.2 * radius)} {c(2.1 * radius)}h{c(-2.4 * radius)}z"


def mark(canvas: Canvas, component: int, colour: str, x: float, y: float, radius: float = 5.0) -> None:
    """Draw one mark with a paper-coloured rim."""
    canvas.path(shape(component, x, y, radius), f"fill-{colour} rim")


def scatter(canvas: Canvas, points: Iterable[Point], component: int, colour: str, radius: float) -> None:
    """Draw many marks of one component as one path with a marker at every vertex."""
    reach = radius * 1.5
    box = coordinate(2 * reach)
    identity = canvas.define(
        f"mark-{component}-{colour}",
        f'<marker id="{{id}}" markerUnits="userSpaceOnUse" markerWidth="{box}" markerHeight="{box}" '
        f'refX="{coordinate(reach)}" refY="{coordinate(reach)}">'
        f'<path class="fill-{colour} rim" d="{shape(component, reach, reach, radius)}"/></marker>',
    )
    use = f"url(#{identity})"
    canvas.path(path_of(points), "points", f'style="marker:{use}"')


def shaded_scatter(
    canvas: Canvas, rows: Iterable[tuple[float, float, float]], j: int, k: int, radius: float, only: int | None = None
) -> None:
    """Draw rows of component j of k, given by place and probability, the greyer the less probable."""
    shades: dict[str, list[Point]] = {}
    for x, y, probability in rows:
        shades.setdefault(shaded_class(j, k, probability, only), []).append((x, y))
    for colour, points in sorted(shades.items()):
        scatter(canvas, points, j if k <= N_COLOURS else 0, colour, radius)


def name_class(colour: str, other: str = "quiet") -> str:
    """Return the classes of a component's name, by the suffix of its colour; `other` for one without a colour."""
    return f"{other if colour == 'mid' else f'text-{colour}'} strong-weight"


def legend_mark(component: int) -> str:
    """Return the mark before a component's number in a table."""
    return (
        f'<svg class="legend" viewBox="0 0 14 14" role="img" aria-label="{SHAPE_NAMES[component]}">'
        f'<path class="fill-{component + 1}" d="{shape(component, 7, 7, 5)}"/></svg>'
    )


def radius_for(n_points: int) -> float:
    """Return the radius of marks, smaller for more points."""
    return 3.4 if n_points <= 400 else 2.7 if n_points <= 900 else 2.2
