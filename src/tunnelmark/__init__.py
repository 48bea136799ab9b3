"""A laboratory for VPNs: real daemons, real workloads, every arm compared with the bare link."""

__version__ = "0.1.0"
