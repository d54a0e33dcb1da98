"""Sequences whose rows come from hidden states that follow each other as a Markov chain."""

from majorant.models.hidden_markov.estimator import HiddenMarkovModel

__all__ = ["HiddenMarkovModel"]
