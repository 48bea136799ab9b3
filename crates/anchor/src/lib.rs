//! The least that a user-space VPN must do, as a yardstick for those that do more.
//!
//! One thread waits for two descriptors: a TUN device and a UDP socket. What the TUN device hands out is sent to the
//! peer that has the packet's address, and what comes from a peer is written to the TUN device: one packet a system call,
//! no offloads, no queue of its own. With a cipher each packet is sealed with ChaCha20-Poly1305 on its way.
//!
//! **It protects nobody's data.** Keys stand in its file and are never renewed, there is no handshake, and a packet that
//! was recorded and is sent again is taken again: a window of counters costs some nanoseconds a packet, which tells no two
//! VPNs apart.

pub mod config;
pub mod crypt;
pub mod forward;
pub mod tun;
