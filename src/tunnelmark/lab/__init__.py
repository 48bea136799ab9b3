"""Lab: hosts, links and processes on one machine, and their complete removal. A lab on this machine needs root.

These are its processes, from the outside in:

    the command      plans, measures, records; talks to the others over Unix sockets (`client`, `node`)
    ├─ janitor       outlives the command by a moment, removes what the kernel does not collect
    └─ lab server    first process of a PID namespace, in a network namespace of its own; makes labs
       ├─ agent      first process of the middle node: one port for each end of a link, one shaper for each direction
       └─ agent ...  first process of each node: starts and reaps the node's programs

The middle node is the node that all links run through. When the command dies, the kernel kills the lab server
(PDEATHSIG). Because the lab server is the first process of its PID namespace, the kernel then also kills every other
process in that namespace. When the last process of a network or mount namespace has ended, the namespace's interfaces
and mounts end.
"""
