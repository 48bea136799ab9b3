"""The code of the lab server, and of the agents that it starts as the first processes of nodes."""
