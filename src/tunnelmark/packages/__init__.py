"""Installs the VPNs under test: recipes with pinned versions, and the installer that carries them out."""
