//! Many datagrams a system call: sendmmsg and recvmmsg over buffers that are allocated once.

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Datagrams a system call at most. More make no difference that was seen, and longer bursts.
pub const BATCH: usize = 64;

/// Bytes of each arriving datagram that are kept: a header, or a whole control message.
const KEPT: usize = 2048;

/// Datagrams of one size on their way out through a connected socket.
pub struct Outgoing {
    size: usize,
    room: Vec<u8>,
}

impl Outgoing {
    /// Room for a batch of datagrams of `size` bytes.
    ///
    /// They are filled with bytes without a pattern, so that a path that compresses gains nothing.
    pub fn new(size: usize) -> Outgoing {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let noise = std::iter::repeat_with(|| {
            // xorshift64, Marsaglia 2003
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        });
        Outgoing { size, room: noise.take(size * BATCH).collect() }
    }

    /// The datagram at that place of the batch.
    pub fn datagram(&mut self, place: usize) -> &mut [u8] {
        &mut self.room[place * self.size..(place + 1) * self.size]
    }

    /// Sends those from place `from` to before `to`; how many the kernel took.
    pub fn send(&mut self, socket: &UdpSocket, from: usize, to: usize) -> io::Result<usize> {
        assert!(from < to && to <= BATCH);
        // SAFETY: all-zero iovec and mmsghdr are valid: no buffers, no names.
        let (mut parts, mut heads): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) = unsafe { mem::zeroed() };
        for (place, part) in parts[from..to].iter_mut().enumerate() {
            let datagram = &mut self.room[(from + place) * self.size..][..self.size];
            *part = libc::iovec { iov_base: datagram.as_mut_ptr().cast(), iov_len: self.size };
        }
        for (head, part) in heads[from..to].iter_mut().zip(&mut parts[from..to]) {
            head.msg_hdr.msg_iov = part;
            head.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: each header of the slice points to one part, and that to bytes of `room`; all live through the call.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), heads[from..].as_mut_ptr(), (to - from) as u32, 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }
}

/// An arrived datagram.
pub struct Arrival<'a> {
    /// Its bytes, up to `KEPT` of them.
    pub beginning: &'a [u8],
    /// Its sender.
    pub from: SocketAddr,
}

/// Room for a batch of arriving datagrams.
pub struct Incoming {
    room: Vec<u8>,
    names: Vec<libc::sockaddr_storage>,
}

impl Incoming {
    /// Room for a batch.
    pub fn new() -> Incoming {
        // SAFETY: an all-zero sockaddr_storage is valid: of no family.
        Incoming { room: vec![0; KEPT * BATCH], names: vec![unsafe { mem::zeroed() }; BATCH] }
    }

    /// Waits for datagrams as long as the socket's read timeout says, and hands each to `each`; how many there were.
    pub fn receive(&mut self, socket: &UdpSocket, mut each: impl FnMut(Arrival<'_>)) -> io::Result<usize> {
        // SAFETY: all-zero iovec and mmsghdr are valid: no buffers, no names.
        let (mut parts, mut heads): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) = unsafe { mem::zeroed() };
        for (part, room) in parts.iter_mut().zip(self.room.chunks_exact_mut(KEPT)) {
            *part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: KEPT };
        }
        for ((head, part), name) in heads.iter_mut().zip(&mut parts).zip(&mut self.names) {
            head.msg_hdr.msg_iov = part;
            head.msg_hdr.msg_iovlen = 1;
            head.msg_hdr.msg_name = (&raw mut *name).cast();
            head.msg_hdr.msg_namelen = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        }
        // SAFETY: each header points to one part of KEPT bytes of `room` and one name; all live through the call.
        let got = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                heads.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_WAITFORONE,
                std::ptr::null_mut(),
            )
        };
        if got < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                // Refused: an ICMP error for what was sent before; the path or the other end was not ready.
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused => Ok(0),
                _ => Err(error),
            };
        }
        for ((head, room), name) in heads.iter().zip(self.room.chunks_exact(KEPT)).zip(&self.names).take(got as usize) {
            if let Some(from) = address(name) {
                each(Arrival { beginning: &room[..head.msg_len as usize], from });
            }
        }
        Ok(got as usize)
    }
}

fn address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the kernel wrote a sockaddr_in, which the family says; the storage is larger and aligned.
            let v4 = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddr::from((ip, u16::from_be(v4.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: the kernel wrote a sockaddr_in6, which the family says; the storage is larger and aligned.
            let v6 = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in6>() };
            Some(SocketAddr::from((Ipv6Addr::from(v6.sin6_addr.s6_addr), u16::from_be(v6.sin6_port))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_sent_in_a_batch_arrives_in_order() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(target) = UdpSocket::bind(any) else { continue }; // a host without IPv6
            target.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            let source = UdpSocket::bind(any).unwrap();
            source.connect(target.local_addr().unwrap()).unwrap();
            let mut outgoing = Outgoing::new(3000);
            for place in 0..5 {
                outgoing.datagram(place)[0] = place as u8;
            }
            assert_eq!(outgoing.send(&source, 1, 5).unwrap(), 4);
            let (mut incoming, mut got) = (Incoming::new(), Vec::new());
            while got.len() < 4 {
                let from = source.local_addr().unwrap();
                incoming
                    .receive(&target, |one| {
                        assert_eq!((one.beginning.len(), one.from), (KEPT, from));
                        got.push(one.beginning[0]);
                    })
                    .unwrap();
            }
            assert_eq!(got, [1, 2, 3, 4]);
        }
    }

    #[test]
    fn nothing_within_the_timeout_is_no_error() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        assert_eq!(Incoming::new().receive(&socket, |_| panic!("nothing was sent")).unwrap(), 0);
    }
}
