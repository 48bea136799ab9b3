"""Judges links: compares what link checks measured with what follows from the links' profiles.

A *look* is one link check. A *line* is one statistic of a look, in one direction (`way`, such as `a>b`).
"""
