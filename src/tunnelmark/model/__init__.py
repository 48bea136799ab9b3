"""Plain data that several stages speak of: metrics, attempts, grades, what looks at links send and bring back. Imports no stage but `plan`."""
