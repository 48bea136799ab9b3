"""Plain data that several stages share: steps, options, metrics, attempts, grades, link checks' plans and results.

Imports no stage but `plan`.
"""
