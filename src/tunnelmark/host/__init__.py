"""The machine that labs run on: its cores, programs, load, pauses and facts, as any process on it can read them."""
