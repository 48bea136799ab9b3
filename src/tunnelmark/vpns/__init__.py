"""One module for each VPN: it turns a mesh into a Deployment, which is plain data. Pure: it starts nothing."""
