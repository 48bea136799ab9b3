//! Carries packets in a loop: from the TUN device to UDP, and from UDP to the TUN device.

use std::io::{Error, ErrorKind, Result};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

use crate::config::{Cipher, Config, key};
use crate::crypt::{self, HEADER, Keys, TAG};

/// Packets of one descriptor before the other gets its turn.
const TURN: usize = 32;

/// Bytes of a packet at most: what IP can carry.
const LARGEST: usize = 65535;

struct Peer {
    number: u32,
    overlay: Ipv4Addr,
    endpoint: SocketAddr,
    keys: Option<Keys>,
    sent: u64,
}

/// The other nodes of the mesh. A peer is found by the address inside a packet, or by what a datagram shows.
pub struct Peers {
    number: u32,
    epoch: u32,
    peers: Vec<Peer>,
}

impl Peers {
    /// The peers of a file that has been checked; an error if a key is not valid.
    pub fn new(config: &Config, epoch: u32) -> std::result::Result<Self, String> {
        let mut peers = Vec::new();
        for peer in &config.peers {
            let keys = match (config.cipher, &peer.send, &peer.receive) {
                (Cipher::Chacha20Poly1305, Some(send), Some(receive)) => Some(Keys::new(&key(send)?, &key(receive)?)),
                _ => None,
            };
            peers.push(Peer { number: peer.number, overlay: peer.overlay, endpoint: peer.endpoint, keys, sent: 0 });
        }
        Ok(Self { number: config.number, epoch, peers })
    }

    /// Makes a datagram of the packet that is in `buffer` from `HEADER` on. Returns where the datagram goes, and its
    /// place in `buffer`.
    ///
    /// None for a packet that goes to no peer: IPv6, or an address that no peer has.
    pub fn outward(&mut self, buffer: &mut [u8], len: usize) -> Option<(SocketAddr, std::ops::Range<usize>)> {
        let packet = &buffer[HEADER..HEADER + len];
        if packet.len() < 20 || packet[0] >> 4 != 4 {
            return None;
        }
        let to = Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]);
        let peer = self.peers.iter_mut().find(|peer| peer.overlay == to)?;
        let Some(keys) = &peer.keys else { return Some((peer.endpoint, HEADER..HEADER + len)) };
        let whole = keys.seal(buffer, len, self.number, self.epoch, peer.sent);
        peer.sent += 1;
        Some((peer.endpoint, 0..whole))
    }

    /// The packet that a datagram holds; none if it is not from a peer, or not sealed by one.
    pub fn inward<'a>(&self, datagram: &'a mut [u8], from: SocketAddr) -> Option<&'a [u8]> {
        let sealed = self.peers.first().is_some_and(|peer| peer.keys.is_some());
        if !sealed {
            return self.peers.iter().any(|peer| peer.endpoint == from).then_some(&*datagram);
        }
        let number = crypt::sender(datagram)?;
        let peer = self.peers.iter().find(|peer| peer.number == number)?;
        peer.keys.as_ref()?.open(datagram)
    }
}

/// A node's two descriptors, neither of which waits, and its peers.
pub struct Way {
    tun: RawFd,
    socket: UdpSocket,
    peers: Peers,
    buffer: Vec<u8>,
}

impl Way {
    /// Carries between `tun`, which stays the caller's, and a socket.
    pub fn new(tun: RawFd, socket: UdpSocket, peers: Peers) -> Self {
        Self { tun, socket, peers, buffer: vec![0; HEADER + LARGEST + TAG] }
    }

    /// Carries packets until one of the descriptors fails.
    pub fn carry(&mut self) -> Result<()> {
        loop {
            let (tun, socket) = self.wait()?;
            if tun {
                self.send(TURN)?;
            }
            if socket {
                self.receive(TURN)?;
            }
        }
    }

    fn wait(&self) -> Result<(bool, bool)> {
        let mut both = [(self.tun, libc::POLLIN), (self.socket.as_raw_fd(), libc::POLLIN)].map(waited);
        poll(&mut both)?;
        Ok((both[0].revents != 0, both[1].revents != 0))
    }

    /// Sends up to so many packets of the TUN device; how many it had.
    pub fn send(&mut self, most: usize) -> Result<usize> {
        for number in 0..most {
            let room = &mut self.buffer[HEADER..HEADER + LARGEST];
            // SAFETY: the room is valid for its length.
            let got = unsafe { libc::read(self.tun, room.as_mut_ptr().cast(), room.len()) };
            if got < 0 {
                return if may_wait(&Error::last_os_error()) { Ok(number) } else { Err(Error::last_os_error()) };
            }
            if let Some((to, range)) = self.peers.outward(&mut self.buffer, got as usize) {
                self.send_to(to, range)?;
            }
        }
        Ok(most)
    }

    /// Waits while the socket's buffer is full, so that packets wait in the TUN device's queue, which can signal their
    /// sender.
    fn send_to(&self, to: SocketAddr, range: std::ops::Range<usize>) -> Result<()> {
        while let Err(why) = self.socket.send_to(&self.buffer[range.clone()], to) {
            if why.kind() != ErrorKind::WouldBlock {
                return Ok(()); // an error about one datagram (no route, refused, too large) loses only that one
            }
            poll(&mut [waited((self.socket.as_raw_fd(), libc::POLLOUT))])?;
        }
        Ok(())
    }

    /// Hands up to so many datagrams to the TUN device; how many there were.
    pub fn receive(&mut self, most: usize) -> Result<usize> {
        for number in 0..most {
            let (got, from) = match self.socket.recv_from(&mut self.buffer) {
                Ok(found) => found,
                Err(why) if may_wait(&why) => return Ok(number),
                Err(_) => continue, // an ICMP error of a datagram that was sent before
            };
            if let Some(packet) = self.peers.inward(&mut self.buffer[..got], from) {
                // A device that is down refuses it, and its queue drops it: as of any packet on a network.
                // SAFETY: the packet is valid for its length.
                unsafe { libc::write(self.tun, packet.as_ptr().cast(), packet.len()) };
            }
        }
        Ok(most)
    }
}

/// Sets how many bytes may wait in a socket. The kernel doubles the number for its own accounts, and has a minimum.
pub fn receive_buffer(socket: &UdpSocket, bytes: u32) -> Result<()> {
    let bytes = bytes as libc::c_int;
    let size = size_of_val(&bytes) as libc::socklen_t;
    let at = (&raw const bytes).cast();
    // SAFETY: the option is an integer, which lives to the end of the call.
    if unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, at, size) } < 0 {
        return Err(Error::last_os_error());
    }
    Ok(())
}

fn may_wait(why: &Error) -> bool {
    matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn waited((fd, events): (RawFd, i16)) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

fn poll(waited: &mut [libc::pollfd]) -> Result<()> {
    // SAFETY: the array is valid for its length.
    if unsafe { libc::poll(waited.as_mut_ptr(), waited.len() as libc::nfds_t, -1) } < 0 {
        let why = Error::last_os_error();
        return if why.kind() == ErrorKind::Interrupted { Ok(()) } else { Err(why) };
    }
    Ok(())
}
