"""Judges links: compares what looks at them met with what follows from their profiles."""
