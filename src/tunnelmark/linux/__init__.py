"""Wraps kernel interfaces: control groups, system calls, BPF, network namespaces, kernel threads; knows of no lab."""
