"""Cluster: measures a study's blocks on many machines, scheduled by Dask, and collects their results in one folder."""
