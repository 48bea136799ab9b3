"""Nodes on other hosts, which OpenSSH reaches.

inventory      which hosts there are, from a file
segments       which interfaces join the nodes' hosts with the middle one
frames         messages and files as bytes of one connection
file_streams   files of programs over a connection, with a bound on what is on the way
places         where this installation lies, here and there
relay          runs on a host: an ordinary lab server, and the way to it
connection     the command's end of one connection
node_terminal  runs on a host: a terminal for a program of a node
ssh_labs       labs whose nodes are on the hosts of an inventory
"""
