"""How every VPN under test is installed: recipes with pinned versions, and the installer that carries them out."""
