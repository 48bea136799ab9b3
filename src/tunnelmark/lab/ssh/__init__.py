"""Makes labs whose nodes run on other hosts, which OpenSSH reaches.

inventory      which hosts there are, from a file
node_hosts     which node runs on which host
segments       which interfaces join the nodes' hosts with the host of the middle node
frames         messages and data as bytes of one connection
file_streams   files of programs over a connection, with a bound on the bytes that are on their way
places         translates paths of this installation into those of another machine
relay          runs on a host: an ordinary lab server, which the command reaches through it
connection     the command's end of one connection
node_terminal  runs on a host: a terminal for a program of a node
ssh_labs       labs whose nodes are on the hosts of an inventory
"""
