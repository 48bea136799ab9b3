//! Sends packets of one size that must not be split, and learns what became of them: answered, refused with an ICMP message, or silent.

use std::io::{self, ErrorKind};
use std::mem::{self, MaybeUninit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use serde::Serialize;

use crate::clock::{self, MILLISECOND};
use crate::packet::Header;
use crate::socket;

/// The stream that its datagrams say they belong to.
pub const STREAM: u32 = 0x4d54_5500;

/// From one try of a size to the next.
const SPACING: u64 = 20 * MILLISECOND;

/// What an answer is given at least, beyond the last try, once one has come and says how long the path is.
const PATIENCE: u64 = 300 * MILLISECOND;

/// The same as long as no answer has come: five times the round trip over a geostationary satellite.
const FIRST_PATIENCE: u64 = 3000 * MILLISECOND;

/// No IPv4 packet is larger.
pub const LARGEST: usize = 65_535;

/// What became of the packets of one size, all tries together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The other end had one whole.
    Passed,
    /// This end's own kernel refused it: the interface's MTU is smaller.
    Local,
    /// An ICMP message said that it is too big.
    Icmp,
    /// There was no answer and no refusal.
    Silent,
}

#[derive(Clone, Copy, Serialize)]
pub struct Try {
    pub size: usize,
    pub outcome: Outcome,
    /// The MTU that a refusal named; 0 for none.
    pub said: usize,
}

/// The end that asks, and what it has tried so far.
pub struct Prober {
    socket: UdpSocket,
    v4: bool,
    pub headers: usize,
    tries: u32,
    sequence: u64,
    pub rtt: u64,
    /// The MTU that the last refusal named, 0 for none.
    pub said: usize,
    pub tried: Vec<Try>,
    buffer: Vec<u8>,
}

/// A refusal that the kernel has kept for this socket.
struct Refusal {
    here: bool,
    mtu: usize,
}

impl Prober {
    pub fn new(to: SocketAddr, tries: u32) -> io::Result<Prober> {
        let v4 = to.is_ipv4();
        let any = if v4 { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
        let (level, discover, errors, probe) = if v4 {
            (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_RECVERR, libc::IP_PMTUDISC_PROBE)
        } else {
            (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_RECVERR, libc::IPV6_PMTUDISC_PROBE)
        };
        socket::set(&socket, level, discover, probe)?;
        socket::set(&socket, level, errors, 1)?;
        socket::set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, 4 * LARGEST as i32)?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        let headers = socket::headers(to.ip());
        Ok(Prober {
            socket,
            v4,
            headers,
            tries,
            sequence: 0,
            rtt: 0,
            said: 0,
            tried: Vec::new(),
            buffer: vec![0; LARGEST],
        })
    }

    /// The largest size that the kernel takes for the interface: found without waiting for an answer.
    pub fn interface(&mut self, least: usize) -> usize {
        let most = if self.v4 { LARGEST } else { LARGEST + 40 };
        let (mut takes, mut refuses) = (least, most + 1);
        while refuses - takes > 1 {
            let size = usize::midpoint(takes, refuses);
            self.refusals();
            // EMSGSIZE may also be the echo of an ICMP message about an earlier packet: the kept refusals show it.
            if self.send(size).is_err() && self.refusals().iter().any(|one| one.here) {
                refuses = size;
            } else {
                takes = size;
            }
        }
        takes
    }

    /// Sends packets of a size until one is answered or all tries are used.
    pub fn attempt(&mut self, size: usize) -> Outcome {
        self.refusals();
        let first = self.sequence;
        let mut result = Try { size, outcome: Outcome::Silent, said: 0 };
        for one in 1..=self.tries {
            // One that cannot be sent, for want of a route or a buffer, is as good as lost.
            let _ = self.send(size);
            let wait = if one < self.tries { SPACING } else { patience(self.rtt) };
            if self.answered(first, size, wait, &mut result) {
                result = Try { size, outcome: Outcome::Passed, said: 0 };
                break;
            }
            if result.outcome == Outcome::Local {
                break; // the kernel will not change its mind
            }
        }
        self.said = result.said;
        self.tried.push(result);
        result.outcome
    }

    fn send(&mut self, size: usize) -> io::Result<()> {
        let mut datagram = vec![0; size - self.headers];
        let now = clock::now();
        Header { stream: STREAM, sequence: self.sequence, intended: now, sent: now }.write(&mut datagram);
        self.sequence += 1;
        self.socket.send(&datagram).map(|_| ())
    }

    /// Whether an answer to a packet of that size, from number `first` on, comes within `wait` nanoseconds; a refusal
    /// meanwhile is noted in `result`.
    fn answered(&mut self, first: u64, size: usize, wait: u64, result: &mut Try) -> bool {
        let until = clock::now() + wait;
        loop {
            match self.socket.recv(&mut self.buffer) {
                Ok(length) => {
                    let now = clock::now();
                    if let Some(header) = Header::read(&self.buffer[..length])
                        && header.sequence >= first
                        && header.intended as usize == size - self.headers
                    {
                        self.rtt = self.rtt.max(now.saturating_sub(header.sent));
                        return true;
                    }
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The error of an earlier packet, which is gone with this call; the refusals have its reason.
                Err(_) => continue,
            }
            for refusal in self.refusals() {
                // One that names a size which this packet does not exceed belongs to an earlier, larger one.
                if refusal.mtu < size {
                    let outcome = if refusal.here { Outcome::Local } else { Outcome::Icmp };
                    *result = Try { size, outcome, said: refusal.mtu };
                }
            }
            let now = clock::now();
            if now >= until || result.outcome == Outcome::Local {
                return false;
            }
            self.wait(until - now);
        }
    }

    fn wait(&self, nanoseconds: u64) {
        let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let timeout = nanoseconds.div_ceil(MILLISECOND) as i32;
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&raw mut poll, 1, timeout) };
    }

    /// Reads all refusals that the kernel has kept for this socket.
    fn refusals(&mut self) -> Vec<Refusal> {
        let mut found = Vec::new();
        while let Some(refusal) = refusal(&self.socket) {
            found.push(refusal);
        }
        found
    }
}

/// Nanoseconds that an answer is given beyond the last try, where the longest round trip so far was `rtt` (0: none yet).
fn patience(rtt: u64) -> u64 {
    if rtt == 0 { FIRST_PATIENCE } else { PATIENCE.max(2 * rtt + PATIENCE / 2) }
}

/// One refusal from the socket's error queue (ip(7), IP_RECVERR).
fn refusal(socket: &UdpSocket) -> Option<Refusal> {
    let mut control = MaybeUninit::<[u64; 64]>::uninit(); // aligned as control messages must be
    let mut payload = [0u8; 64];
    let mut part = libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload.len() };
    // SAFETY: a msghdr of zeros is valid.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = mem::size_of_val(&control) as _;
    // SAFETY: all pointers of the message are to memory of the given sizes that lives through the call.
    let done = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
    if done < 0 {
        return None;
    }
    let mut refusal = Refusal { here: false, mtu: 0 };
    // SAFETY: the kernel has filled the control messages, and msg_controllen says how many bytes of them.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            let kind = ((*header).cmsg_level, (*header).cmsg_type);
            if kind == (libc::IPPROTO_IP, libc::IP_RECVERR) || kind == (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) {
                let error: libc::sock_extended_err =
                    libc::CMSG_DATA(header).cast::<libc::sock_extended_err>().read_unaligned();
                if error.ee_errno == libc::EMSGSIZE as u32 {
                    refusal.here = error.ee_origin == libc::SO_EE_ORIGIN_LOCAL;
                    refusal.mtu = error.ee_info as usize;
                    return Some(refusal);
                }
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    // Another error, such as a port that is not open. It says nothing of sizes, so it must not look like a refusal.
    Some(Refusal { here: false, mtu: usize::MAX })
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::packet;

    /// The other end of a path that takes this long, back and forth.
    fn far(round_trip: Duration) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap();
        thread::spawn(move || {
            let mut buffer = vec![0; LARGEST];
            loop {
                let (length, from) = socket.recv_from(&mut buffer).unwrap();
                let header = Header::read(&buffer[..length]).unwrap();
                let back = socket.try_clone().unwrap();
                thread::spawn(move || {
                    thread::sleep(round_trip);
                    let mut small = [0; packet::LEN];
                    Header { intended: length as u64, ..header }.write(&mut small);
                    back.send_to(&small, from)
                });
            }
        });
        at
    }

    #[test]
    fn the_first_answer_of_a_long_path_is_waited_for_and_those_after_it_as_well() {
        let mut prober = Prober::new(far(Duration::from_millis(600)), 6).unwrap();
        assert_eq!(prober.attempt(1000), Outcome::Passed);
        assert!(prober.rtt >= 600 * MILLISECOND);
        assert_eq!(prober.attempt(500), Outcome::Passed);
    }

    #[test]
    fn silence_is_waited_for_as_long_as_the_path_asks_for() {
        assert_eq!(patience(0), 3000 * MILLISECOND);
        assert_eq!(patience(MILLISECOND), 300 * MILLISECOND);
        assert_eq!(patience(600 * MILLISECOND), 1350 * MILLISECOND);
    }
}
