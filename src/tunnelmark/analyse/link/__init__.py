"""Judges links: compares what link checks measured with what follows from the links' profiles."""
