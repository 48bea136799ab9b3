"""Carries out a plan, block by block, and hands on the result of every attempt as plain data."""
