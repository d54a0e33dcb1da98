"""The sections of a report, one file each: from the numbers of a run to words and a drawing."""
