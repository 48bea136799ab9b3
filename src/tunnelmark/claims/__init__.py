"""Reads what published studies claim, and judges each claim by a run or by imported raw data.

`claims_schema` defines the format of a file of claims, and `reading` turns a file into the data of `model`.
`statements` turns each claim into statements that must be true of values. `judging` tests them on values: those that
the source printed (`printed`), those of a run (`measured`), or raw data that its authors published (`raw`).
"""
