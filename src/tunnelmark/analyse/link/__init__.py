"""Judges links: what looks at them met, held against what follows from their profiles."""
