//! The least that a user-space VPN must do, as a yardstick for those that do more.
//!
//! One thread waits for two descriptors: a TUN device and a UDP socket. It sends packets of the TUN device to the peer
//! that has the packet's address, and writes packets from a peer to the TUN device. It uses one system call a packet,
//! no offloads, and no queue of its own. With a cipher it seals each packet with ChaCha20-Poly1305 on its way.
//!
//! **It does not protect data.** Its keys are in its file and are never renewed. There is no handshake. A packet that
//! was recorded and is sent again is accepted again: a window of counters costs some nanoseconds a packet, which does
//! not distinguish any two VPNs.

pub mod config;
pub mod crypt;
pub mod forward;
pub mod tun;
