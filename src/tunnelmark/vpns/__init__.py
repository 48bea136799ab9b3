"""One file a VPN: from a mesh to a Deployment, as plain data. Pure: nothing is started here."""
