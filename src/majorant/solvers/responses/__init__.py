"""Distributions of a target given a linear predictor: the components of generalised linear mixtures."""

from majorant.solvers.responses.counts import Binomial, Poisson
from majorant.solvers.responses.real import Gamma, Gaussian, Student
from majorant.solvers.responses.response import Response
from majorant.solvers.responses.rows import ResponseRows, response_rows

RESPONSES: dict[str, Response] = {
    response.name: response for response in (Gaussian(), Poisson(), Binomial(), Gamma(), Student())
}

__all__ = [
    "RESPONSES",
    "Binomial",
    "Gamma",
    "Gaussian",
    "Poisson",
    "Response",
    "ResponseRows",
    "Student",
    "response_rows",
]
