"""Wrappers of kernel interfaces: control groups, system calls, BPF, network namespaces, kernel threads. They know nothing of labs."""
