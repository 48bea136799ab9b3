"""What runs in the lab's server and in the agents of its nodes, processes that the command starts."""
