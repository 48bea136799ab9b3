"""Run: carries a plan out, block by block, and hands every attempt on as data."""
