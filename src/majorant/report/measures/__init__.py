"""The numbers of a report, computed once from a run and before anything is drawn or said."""
