"""Record: the append-only store of a study, its tidy schema, and the environment it ran in."""
