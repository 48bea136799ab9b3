"""What published studies claim, as data, and what a run or imported raw data say of each claim.

`claims_schema` is the shape of a file, `reading` makes `model`'s data of it, `statements` makes of each claim what must be true of
values, and `judging` holds that against values: those that the source printed (`printed`), those of a run (`measured`),
or raw data that its authors published (`raw`).
"""
