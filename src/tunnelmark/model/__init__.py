"""Plain data that several stages speak of: what is done on a node, options, metrics, attempts, grades, what looks at links send and bring back. Imports no stage but `plan`."""
