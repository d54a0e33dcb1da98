"""Every sentence of a report, chosen by rule from the numbers of the run."""
