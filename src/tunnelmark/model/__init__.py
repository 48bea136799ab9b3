"""Plain data for several packages: steps, options, metrics, attempts, grades, link checks' plans and results.

The packages `plan`, `run`, `analyse`, `report` and others are the stages that data passes on its way from a study to a
report (ARCHITECTURE.md). The modules here import only `plan` of them.
"""
