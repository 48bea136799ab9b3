"""Cluster: a study's blocks on many machines, scheduled by Dask, and their results in one folder."""
