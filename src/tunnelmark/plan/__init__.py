"""Turns a study file and a seed into a checked, ordered list of trials. Its only I/O is on plan files."""
