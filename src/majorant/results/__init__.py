"""Results over many fits: stability, selection, tests and matched labels."""
