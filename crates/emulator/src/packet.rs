//! Opens a port that exists already: an interface in this namespace, through AF_PACKET.

use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::batch::{BATCH, Batch};
use crate::netlink;
use crate::sys::{checked, owned};

/// Not yet in the libc crate; `include/uapi/linux/if_packet.h`.
const PACKET_IGNORE_OUTGOING: i32 = 23;
const SOL_PACKET: i32 = 263;
/// Room for packets that wait for us: 64 MiB, a tenth of a second at 5 Gbit/s.
const RECEIVE_BUFFER: i32 = 64 << 20;

/// A packet socket bound to one interface, with a virtio header in front of every packet.
pub struct Packet {
    pub fd: OwnedFd,
    dropped: u64,
}

impl Packet {
    pub fn open(interface: &str) -> Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0 receives nothing until it is bound, so that nothing of other interfaces slips in.
        // SAFETY: takes numbers only and returns a new descriptor.
        let fd = unsafe { owned(libc::socket(libc::AF_PACKET, kind, 0))? };
        let packet = Self { fd, dropped: 0 };
        packet.set(SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        packet.set(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        // No PACKET_QDISC_BYPASS: with it the kernel drops what the interface must split first (`__dev_direct_xmit`).
        if packet.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER).is_err() {
            // Without the capability in the first user namespace: as much as is allowed.
            packet.set(libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER)?;
        }
        if packet.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, RECEIVE_BUFFER).is_err() {
            packet.set(libc::SOL_SOCKET, libc::SO_SNDBUF, RECEIVE_BUFFER)?;
        }
        // SAFETY: an all-zero sockaddr_ll is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = netlink::index(interface)? as i32;
        let size = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is valid for its size.
        checked(i64::from(unsafe { libc::bind(packet.fd.as_raw_fd(), (&raw const address).cast(), size) }))?;
        Ok(packet)
    }

    /// A socket that is what it is.
    #[cfg(test)]
    pub fn over(fd: OwnedFd) -> Self {
        Self { fd, dropped: 0 }
    }

    fn set(&self, level: i32, option: i32, value: i32) -> Result<()> {
        let size = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the value is valid for its size.
        let result = unsafe { libc::setsockopt(self.fd.as_raw_fd(), level, option, (&raw const value).cast(), size) };
        checked(i64::from(result)).map(drop)
    }

    pub fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        let mut vectors: [libc::iovec; BATCH] = std::array::from_fn(|number| {
            let buffer = &mut batch.buffers[number];
            libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() }
        });
        let mut messages = vectors.each_mut().map(|vector| message(vector, 1));
        let (fd, flags) = (self.fd.as_raw_fd(), libc::MSG_DONTWAIT);
        // SAFETY: messages and vectors live to the end of the call, and point into the batch's buffers, which
        // are borrowed for writing.
        let got = unsafe { libc::recvmmsg(fd, messages.as_mut_ptr(), BATCH as u32, flags, std::ptr::null_mut()) };
        let got = checked(i64::from(got))? as usize;
        for (len, message) in batch.lens.iter_mut().zip(&messages[..got]) {
            *len = message.msg_len as usize;
        }
        Ok(got)
    }

    /// Sends packets; returns how many the kernel refused.
    pub fn send(&mut self, packets: &[[&[u8]; 3]]) -> u64 {
        let mut refused = 0;
        for chunk in packets.chunks(BATCH) {
            let mut vectors = [[libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 3]; BATCH];
            for (vectors, places) in vectors.iter_mut().zip(chunk) {
                for (vector, place) in vectors.iter_mut().zip(places) {
                    *vector = libc::iovec { iov_base: place.as_ptr().cast_mut().cast(), iov_len: place.len() };
                }
            }
            let mut messages = vectors.each_mut().map(|vectors| message(&mut vectors[0], 3));
            let mut rest = &mut messages[..chunk.len()];
            while !rest.is_empty() {
                let (fd, flags) = (self.fd.as_raw_fd(), libc::MSG_DONTWAIT);
                // SAFETY: messages and vectors live to the end of the call; what they point to is borrowed
                // and only read.
                let sent = unsafe { libc::sendmmsg(fd, rest.as_mut_ptr(), rest.len() as u32, flags) };
                // An error is about the first packet; it is gone, the others get their chance.
                let done = if sent < 0 {
                    refused += 1;
                    1
                } else {
                    (sent as usize).max(1)
                };
                rest = &mut rest[done..];
            }
        }
        refused
    }

    /// Packets lost so far because the socket's buffer was full.
    pub fn dropped(&mut self) -> u64 {
        let mut stats = [0u32; 2];
        let mut size = size_of_val(&stats) as libc::socklen_t;
        // SAFETY: the array is valid for the size, which the kernel does not exceed. Reading resets the count.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                SOL_PACKET,
                libc::PACKET_STATISTICS,
                stats.as_mut_ptr().cast(),
                &mut size,
            )
        };
        if result == 0 {
            self.dropped += u64::from(stats[1]);
        }
        self.dropped
    }
}

/// A message over `count` vectors that begin at `vector`.
fn message(vector: *mut libc::iovec, count: usize) -> libc::mmsghdr {
    // SAFETY: an all-zero mmsghdr is valid.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    message.msg_hdr.msg_iov = vector;
    message.msg_hdr.msg_iovlen = count as _;
    message
}
