"""What this machine can do: requirements that are met or missing, and measurements of it, with a cache."""
