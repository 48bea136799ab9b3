"""One file a workload: what to start on which node, and how to read what it prints."""
