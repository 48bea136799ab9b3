//! The subcommand `mtu`: the largest packet that reaches the other end whole, and what happens to one that is larger.
//!
//! Packets carry the don't-fragment bit (over IPv6 only the sender may split them). The kernel is set not to use what
//! it knows of the path (`IP_PMTUDISC_PROBE`): only the interface's own MTU still stops packets here.

use std::io::{self, ErrorKind};
use std::mem::{self, MaybeUninit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use clap::Args;
use serde::Serialize;

use crate::clock::{self, MILLISECOND};
use crate::packet::{self, Header};
use crate::print;
use crate::socket;

/// The stream that its datagrams say they belong to.
const STREAM: u32 = 0x4d54_5500;

/// From one try of a size to the next.
const SPACING: u64 = 20 * MILLISECOND;

/// What an answer is given at least, beyond the last try.
const PATIENCE: u64 = 300 * MILLISECOND;

/// After this time no limit of messages a second still holds one back (Linux: icmp_ratelimit; tincd: 3 a second).
const REPRIEVE: u64 = 1200 * MILLISECOND;

/// No IPv4 packet is larger.
const LARGEST: usize = 65_535;

#[derive(Args)]
#[command(group(clap::ArgGroup::new("end").required(true).args(["to", "listen"])))]
pub struct Options {
    /// Where the other end listens
    #[arg(long)]
    to: Option<SocketAddr>,
    /// Be the other end: answer on this address, until ended
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// How often a size is tried before it counts as too large
    #[arg(long, default_value_t = 6)]
    tries: u32,
}

/// What became of the packets of one size, all tries together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
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
struct Try {
    size: usize,
    outcome: Outcome,
    /// The MTU that a refusal named; 0 for none.
    said: usize,
}

/// What was found. Sizes are bytes of IP packet, its header included.
#[derive(Serialize)]
struct Found {
    mtu: usize,
    /// The largest size that this end's own interface takes.
    interface: usize,
    /// What happened to packets of one byte more.
    above: Outcome,
    said: usize,
    rtt_us: u64,
    tries: Vec<Try>,
}

pub fn run(options: &Options) -> Result<(), String> {
    match (options.to, options.listen) {
        (Some(to), _) => search(to, options.tries),
        (_, Some(at)) => answer(at),
        _ => Err("either --to or --listen is needed".into()),
    }
}

/// Says of every datagram of ours how large it was, in one that is small enough for any path.
fn answer(at: SocketAddr) -> Result<(), String> {
    let socket = UdpSocket::bind(at).map_err(|error| format!("{at}: {error}"))?;
    let mut buffer = vec![0; LARGEST + 1];
    let mut small = [0; packet::LEN];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        if let Some(header) = Header::read(&buffer[..length])
            && header.stream == STREAM
        {
            Header { intended: length as u64, ..header }.write(&mut small);
            // A lost answer is what the tries are for.
            let _ = socket.send_to(&small, from);
        }
    }
}

fn search(to: SocketAddr, tries: u32) -> Result<(), String> {
    let mut prober = Prober::new(to, tries).map_err(|error| error.to_string())?;
    let least = prober.headers + packet::LEN;
    if prober.attempt(least) != Outcome::Passed {
        return Err(format!("{to} did not answer the smallest packet, of {least} bytes"));
    }
    let interface = prober.interface(least);
    let (mut passes, mut fails) = (least, interface + 1);
    let (mut above, mut said) = (Outcome::Local, interface);
    let mut candidate = interface;
    while fails - passes > 1 {
        let outcome = prober.attempt(candidate);
        if outcome == Outcome::Passed {
            passes = candidate;
        } else {
            fails = candidate;
            (above, said) = (outcome, prober.said);
        }
        candidate = next(passes, fails, said);
    }
    if above == Outcome::Silent {
        // A node says "too big" a few times a second at most: silence right after other tries proves nothing.
        clock::sleep_until(clock::now() + REPRIEVE);
        (above, said) = (prober.attempt(fails), prober.said);
    }
    print::line(&Found { mtu: passes, interface, above, said, rtt_us: prober.rtt / 1000, tries: prober.tried })
}

/// The size to try between one that passes and one that fails: what a refusal named, one more than that, or the middle.
fn next(passes: usize, fails: usize, said: usize) -> usize {
    [said, said + 1].into_iter().find(|&size| passes < size && size < fails).unwrap_or(usize::midpoint(passes, fails))
}

struct Prober {
    socket: UdpSocket,
    v4: bool,
    headers: usize,
    tries: u32,
    sequence: u64,
    rtt: u64,
    /// The MTU that the last refusal named, 0 for none.
    said: usize,
    tried: Vec<Try>,
    buffer: Vec<u8>,
}

/// A refusal that the kernel has kept for this socket.
struct Refusal {
    here: bool,
    mtu: usize,
}

impl Prober {
    fn new(to: SocketAddr, tries: u32) -> io::Result<Prober> {
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
    fn interface(&mut self, least: usize) -> usize {
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
    fn attempt(&mut self, size: usize) -> Outcome {
        self.refusals();
        let first = self.sequence;
        let mut result = Try { size, outcome: Outcome::Silent, said: 0 };
        for one in 1..=self.tries {
            // One that cannot be sent, for want of a route or a buffer, is as good as lost.
            let _ = self.send(size);
            let wait = if one < self.tries { SPACING } else { PATIENCE.max(2 * self.rtt + PATIENCE / 2) };
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
    use super::*;

    #[test]
    fn the_size_that_a_refusal_named_comes_next_and_then_one_more() {
        assert_eq!(next(60, 1500, 1400), 1400);
        assert_eq!(next(1400, 1500, 1400), 1401);
        assert_eq!(next(60, 1500, 0), 780);
        assert_eq!(next(1400, 1402, 1400), 1401);
        assert_eq!(next(60, 1500, 1500), 780);
    }

    /// A search against a path that passes up to `mtu` and names `said` when it refuses.
    fn steps(mtu: usize, said: usize) -> (usize, u32) {
        let (mut passes, mut fails, mut candidate, mut count) = (60, 9001, 9000, 0);
        while fails - passes > 1 {
            let good = candidate <= mtu;
            if good {
                passes = candidate
            } else {
                fails = candidate
            }
            candidate = next(passes, fails, said);
            count += 1;
        }
        (passes, count)
    }

    #[test]
    fn a_search_ends_at_the_path_s_own_size() {
        for mtu in [60, 61, 575, 1280, 1419, 1420, 8999, 9000] {
            assert_eq!(steps(mtu, 0).0, mtu);
            assert_eq!(steps(mtu, mtu).0, mtu);
        }
    }

    #[test]
    fn a_path_that_names_its_size_is_found_in_few_steps() {
        assert_eq!(steps(1400, 1400), (1400, 3));
    }

    #[test]
    fn the_other_end_says_how_much_arrived_over_loopback() {
        let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        std::thread::spawn(move || answer(at));
        let mut prober = Prober::new(at, 20).unwrap();
        assert_eq!(prober.attempt(1000), Outcome::Passed);
        assert_eq!(prober.interface(60), LARGEST);
    }
}
