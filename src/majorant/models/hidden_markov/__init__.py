"""Hidden Markov models: sequences whose rows depend on the states of a Markov chain."""

from majorant.models.hidden_markov.estimator import HiddenMarkovModel

__all__ = ["HiddenMarkovModel"]
