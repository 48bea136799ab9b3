"""The workloads, one file each: which programs to start on which node, and how to read their output."""
