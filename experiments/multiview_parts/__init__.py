"""The parts of `multiview.py`: one module a data set or question, each with its `FILE` and its `lines`."""
