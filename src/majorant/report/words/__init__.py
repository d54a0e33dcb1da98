"""The sentences of a report, chosen by rules from the numbers of the run."""
