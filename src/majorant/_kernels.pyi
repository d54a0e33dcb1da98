"""Types of the compiled kernels; src/kernels/kernels.hpp says what each computes."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def assign(
    x: Array, w: Array | None, centres: Array, moments: Array | None, labels: Array, nearest: Array | None = None
) -> int: ...
def moments(x: Array, w: Array | None, centres: Array, labels: Array, out: Array) -> None: ...
def distances(x: Array, centres: Array, out: Array) -> None: ...
def row_minimum(energies: Array, least: Array, argument: Array) -> None: ...
def draw(
    energies: Array, w: Array | None, least: Array, argument: Array, price: float, uniforms: Array, z: Array
) -> tuple[float, int]: ...
def walk(energies: Array, w: Array | None, least: Array, room: float, sites: Array, picks: Array, z: Array) -> None: ...
def collect(features: Array, w: Array | None, labels: Array, out: Array) -> None: ...
def assign_within(costs: Array, w: Array, low: float, high: float, prices: Array, mass: Array) -> None: ...
def best_intervals(x: Array, w: Array | None, first: Array) -> float: ...
def sort_rows(x: Array, order: Array, is_new: Array) -> None: ...
def standard_rows(x: Array, order: Array, scale: float, shift: Array, out: Array) -> None: ...
def plus_plus(x: Array, w: Array | None, uniforms: Array, chosen: Array) -> None: ...
def gauss_energies(
    x: Array, means: Array, factors: Array, offsets: Array, covariance_type: int, out: Array
) -> None: ...
def gauss_pass(
    x: Array,
    w: Array | None,
    means: Array,
    factors: Array,
    offsets: Array,
    covariance_type: int,
    beta: float,
    moments: Array | None,
    free: Array | None = None,
    q: Array | None = None,
) -> tuple[float, float]: ...
def gauss_gaps(
    x: Array,
    w: Array | None,
    weights: Array,
    means: Array,
    covariances: Array,
    covariance_type: int,
    beta: float,
    moments: Array,
    totals: Array,
) -> None: ...
def gauss_moments(x: Array, w: Array | None, means: Array, q: Array, covariance_type: int, out: Array) -> None: ...
def softmax_pass(
    x: Array,
    w: Array | None,
    coef: Array,
    offsets: Array | None,
    moments: Array | None = None,
    blocks: Array | None = None,
    probabilities: Array | None = None,
    logs: Array | None = None,
) -> float: ...
def soft_moments(x: Array, w: Array | None, q: Array, moments: Array) -> None: ...
def gate_pass(
    columns: Array,
    w: Array,
    beta: float,
    coef: Array,
    log_density: Array | None,
    q: Array,
    log_sums: Array | None,
    sums: Array,
) -> None: ...
def bit_losses(eta: Array, softplus: Array) -> None: ...
def gauss_em(
    x: Array,
    w: Array | None,
    covariance_type: int,
    floor: float,
    steps: int,
    tolerance: float,
    squared: bool,
    weights: Array,
    means: Array,
    covariances: Array,
    responsibilities: Array | None,
    history: Array,
    passes: Array,
    floored: Array,
    status: Array,
) -> None: ...
def gauss_step(
    moments: Array,
    reference: Array,
    covariance_type: int,
    floor: float,
    single: bool,
    weights: Array,
    means: Array,
    covariances: Array,
    factors: Array,
    offsets: Array,
    floored: Array,
) -> tuple[float, float, int]: ...
def gauss_factor(covariances: Array, d: int, covariance_type: int, factors: Array, constants: Array) -> int: ...
def regression_pass(
    x: Array,
    y: Array,
    w: Array | None,
    weights: Array,
    coef: Array,
    variances: Array,
    beta: float,
    statistics: Array | None = None,
    energies: Array | None = None,
    responsibilities: Array | None = None,
) -> float: ...
def category_em(
    codes: Array, first: Array, w: Array | None, tolerance: float, weights: Array, probabilities: Array, path: Array
) -> tuple[float, int, bool]: ...
def response_losses(
    family: int,
    df: float,
    columns: Array,
    y: Array,
    offset: Array | None,
    trials: Array | None,
    coef: Array,
    dispersions: Array,
    out: Array,
) -> None: ...
def response_sums(
    family: int,
    df: float,
    columns: Array,
    y: Array,
    offset: Array | None,
    trials: Array | None,
    coef: Array,
    dispersions: Array,
    q: Array,
    out: Array,
) -> None: ...
def regression_em(
    x: Array,
    y: Array,
    w: Array | None,
    ratio: float,
    floor: float,
    common: bool,
    max_steps: int,
    tolerance: float,
    weights: Array,
    coef: Array,
    variances: Array,
    path: Array | None = None,
) -> tuple[float, int, bool]: ...
def regression_step(
    statistics: Array, ratio: float, floor: float, common: bool, weights: Array, coef: Array, variances: Array
) -> float: ...
def regression_concentrate(
    x: Array, y: Array, w: Array | None, odds: Array | None, drawn: Array, mass: float, steps: int, coef: Array
) -> float: ...
def regression_greedy(
    x: Array, y: Array, w: Array | None, steps: int, mass: Array, uniforms: Array, coef: Array
) -> None: ...
def chain_sums(
    unary: Array,
    transitions: Array,
    offsets: Array,
    table: Array | None,
    w: Array | None,
    log_partition: Array,
    entropy: Array | None = None,
    marginals: Array | None = None,
    steps: Array | None = None,
    pairs: Array | None = None,
) -> None: ...
def chain_best(
    unary: Array, transitions: Array, offsets: Array, table: Array | None, path: Array, score: Array
) -> None: ...
def chain_draw(
    unary: Array, transitions: Array, offsets: Array, table: Array | None, uniforms: Array, path: Array
) -> None: ...
def chain_pass(
    start: Array,
    steps: Array,
    offsets: Array,
    log_density: Array,
    w: Array | None,
    q: Array,
    log_partition: Array,
    first: Array | None,
    counts: Array | None,
) -> None: ...
def isa() -> str: ...
def isas() -> list[str]: ...

class BoxSearch:
    def propose(self, centre: Array) -> None: ...
    def advance(self, tests: int) -> bool: ...
    def write_centre(self, out: Array) -> None: ...
    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...
    @property
    def tests(self) -> int: ...
    @property
    def boxes(self) -> int: ...

def cover_search(x: Array, w: Array | None, reach: Array, tolerance: float) -> BoxSearch: ...
def cover_climb(
    x: Array, w: Array | None, reach: Array, centres: Array, values: Array, max_steps: int, enough: float
) -> tuple[int, int]: ...
def bump_search(x: Array, heights: Array, tolerance: float) -> BoxSearch: ...
def bump_climb(x: Array, heights: Array, centres: Array, values: Array, max_steps: int, progress: float) -> int: ...
def line_search(z: Array, y: Array, heights: Array, labels: Array, caps: Array, tolerance: float) -> BoxSearch: ...
def line_climb(
    z: Array, y: Array, heights: Array, lines: Array, values: Array, max_steps: int, progress: float
) -> int: ...

class SwapSearch:
    def configure(
        self, *, candidates: int, local_steps: int, still: float, accepted: float, progress: float
    ) -> None: ...
    def seed(self) -> None: ...
    def descend(self, limit: int, tolerance: float) -> bool: ...
    def rounds(self, patience: int, limit: int) -> bool: ...
    def single_moves(self, sweeps: int) -> int: ...
    def kick(self, strength: int, anywhere: bool = False) -> None: ...
    def polish(self, limit: int) -> bool: ...
    def keep(self) -> None: ...
    def restore(self) -> None: ...
    def recombine(self) -> bool: ...
    def attempt(self, centre: int, point: int) -> bool: ...
    def evaluate(self, point: int, losses: Array) -> float: ...
    def write_centres(self, out: Array) -> None: ...
    def write_labels(self, out: Array) -> None: ...
    def bookkeeping(self) -> dict[str, Array]: ...
    def take_accepted(self) -> list[float]: ...
    @property
    def objective(self) -> float: ...
    @property
    def n_rounds(self) -> int: ...

def swap_search(x: Array, w: Array, k: int, seed: int, on_sphere: bool = False) -> SwapSearch: ...

class _Medoids:
    def __init__(
        self,
        distances: Array,
        w: Array,
        medoids: Array,
        nearest: Array,
        second: Array,
        first: Array,
        next: Array,
        table: Array,
    ) -> None: ...
    def replace(self, position: int, row: int) -> None: ...
    def swaps(self, candidates: Array, at: int, quiet: int, tests: int, least: float) -> tuple[int, int, int]: ...

class MedoidsF32(_Medoids): ...
class MedoidsF64(_Medoids): ...

class Bags:
    def scores(self, begin: int, end: int, w: Array, best: Array, where: Array, own: Array | None = None) -> None: ...
    def pooled(
        self, begin: int, end: int, w: Array, shares: Array, cost: Array, beta: float, tau: float, gradient: Array
    ) -> float: ...
    def sweep(
        self,
        shares: Array,
        cost: Array,
        alpha: float,
        new_label: Array | None,
        new_row: Array | None,
        online: bool,
        most_steps: int,
        order: Array,
        label: Array,
        row: Array,
        share: Array,
        used: Array,
        w: Array,
    ) -> tuple[float, int]: ...
    def mixture(
        self,
        begin: int,
        end: int,
        shares: Array,
        cost: Array,
        label: Array,
        row: Array,
        share: Array,
        used: Array,
        features: Array,
    ) -> float: ...

def bags(
    x: Array,
    edges: Array | None,
    indices: Array | None,
    d: int,
    bias: float,
    starts: Array,
    counts: Array,
    codes: Array,
    classes: int,
    first: int,
) -> Bags: ...

class Grids:
    def infer(
        self,
        begin: int,
        end: int,
        w: Array,
        cost: Array,
        is_given: bool,
        best: Array,
        label: Array,
        map: Array,
        own: Array | None = None,
    ) -> None: ...
    def pooled(
        self, begin: int, end: int, w: Array, shares: Array, cost: Array, beta: float, tau: float, gradient: Array
    ) -> float: ...
    def sweep(
        self,
        shares: Array,
        cost: Array,
        alpha: float,
        new_label: Array | None,
        new_map: Array | None,
        online: bool,
        most_steps: int,
        order: Array,
        label: Array,
        map: Array,
        share: Array,
        used: Array,
        w: Array,
    ) -> tuple[float, int]: ...
    def mixture(
        self,
        begin: int,
        end: int,
        shares: Array,
        cost: Array,
        label: Array,
        map: Array,
        share: Array,
        used: Array,
        features: Array,
    ) -> float: ...

def grids(x: Array, starts: Array, regions: int, codes: Array, classes: int, parts: int, scale: float) -> Grids: ...
