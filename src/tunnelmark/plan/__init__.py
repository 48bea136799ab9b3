"""Plan: from a study file and a seed to a checked, ordered list of trials. Pure: no I/O but reading files."""
