//! The subcommand `stream`: sends datagrams on a schedule to one peer, and notes each that arrives from it.
//!
//! Both ends run it, so that a path is watched in both directions. It survives what happens to the path meanwhile: the
//! socket is bound to no address and connected to none, and a datagram that the kernel refuses counts as sent.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use serde::Serialize;

use crate::clock::{self, MICROSECOND, MILLISECOND, SECOND};
use crate::packet::{self, Header};
use crate::print;
use crate::socket;

/// How long a wait for the first datagram, or for the end, goes on before it looks whether it was asked to end.
const LOOK: u64 = 50 * MILLISECOND;

/// The stream that its datagrams say they belong to.
const STREAM: u32 = 0x5354_524d;

static ASKED_TO_END: AtomicBool = AtomicBool::new(false);

#[derive(Args)]
pub struct Options {
    /// Where the other end receives
    #[arg(long)]
    to: SocketAddr,
    /// The port to receive on
    #[arg(long)]
    port: u16,
    /// Datagrams a second
    #[arg(long, default_value_t = 200.0)]
    rate: f64,
    /// Seconds of datagrams, the pause not counted
    #[arg(long)]
    seconds: f64,
    /// Seconds of datagrams before the pause
    #[arg(long, default_value_t = 0.0)]
    pause_after: f64,
    /// Seconds without datagrams
    #[arg(long, default_value_t = 0.0)]
    pause: f64,
    /// Bytes of UDP payload
    #[arg(long, default_value_t = 64)]
    size: usize,
    /// Sends nothing before something has arrived
    #[arg(long)]
    wait: bool,
    /// Seconds to receive beyond the last datagram sent; without it until SIGTERM
    #[arg(long)]
    linger: Option<f64>,
}

/// What one end saw. Times of arrivals are microseconds since `start`, which is in nanoseconds of CLOCK_MONOTONIC.
#[derive(Serialize)]
struct Seen {
    start: u64,
    interval_ns: u64,
    sent: u64,
    /// How late the latest datagram left, in microseconds.
    latest_us: u64,
    /// Datagrams that this end's own kernel refused, by the name of the error.
    refused: BTreeMap<String, u64>,
    /// Number, when it was sent, when it arrived.
    arrivals: Vec<(u64, i64, i64)>,
}

struct Arrival {
    sequence: u64,
    sent: u64,
    received: u64,
}

/// When the datagrams of a stream leave, in nanoseconds since its start.
struct Schedule {
    interval: u64,
    count: u64,
    before_pause: u64,
    pause: u64,
}

impl Schedule {
    fn of(options: &Options) -> Result<Schedule, String> {
        if !(options.rate > 0.0 && options.rate <= 100_000.0) {
            return Err("the rate should be above 0 and at most 100000 datagrams a second".into());
        }
        let many = |seconds: f64| (seconds * options.rate).round() as u64;
        Ok(Schedule {
            interval: (SECOND as f64 / options.rate) as u64,
            count: many(options.seconds),
            before_pause: many(options.pause_after),
            pause: (options.pause * SECOND as f64) as u64,
        })
    }

    fn leaves(&self, sequence: u64) -> u64 {
        sequence * self.interval + if sequence < self.before_pause { 0 } else { self.pause }
    }
}

struct End {
    socket: UdpSocket,
    arrivals: Vec<Arrival>,
    buffer: Vec<u8>,
}

impl End {
    /// Receives until `moment`, or until asked to end.
    fn receive_until(&mut self, moment: u64) {
        loop {
            self.drain();
            let now = clock::now();
            if now >= moment || ended() {
                return;
            }
            wait_readable(&self.socket, moment - now);
        }
    }

    fn drain(&mut self) {
        loop {
            match receive(&self.socket, &mut self.buffer) {
                Ok((length, received)) => match Header::read(&self.buffer[..length]) {
                    Some(header) if header.stream == STREAM => {
                        self.arrivals.push(Arrival { sequence: header.sequence, sent: header.sent, received });
                    }
                    _ => {}
                },
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Nothing is there, or an error of the path: both say that nothing has arrived.
                Err(_) => return,
            }
        }
    }
}

pub fn run(options: &Options) -> Result<(), String> {
    let schedule = Schedule::of(options)?;
    if options.size < packet::LEN || options.size > 65_507 {
        return Err(format!("the size should be {} to 65507 bytes", packet::LEN));
    }
    end_on_sigterm();
    clock::sharpen();
    go_first();
    let any = if options.to.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let at = SocketAddr::new(any, options.port);
    let socket = UdpSocket::bind(at).map_err(|error| format!("{at}: {error}"))?;
    socket::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).map_err(|error| error.to_string())?;
    socket.set_nonblocking(true).map_err(|error| error.to_string())?; // a full buffer must not hold the schedule up
    let mut end = End { socket, arrivals: Vec::new(), buffer: vec![0; 65_536] };

    while options.wait && end.arrivals.is_empty() && !ended() {
        wait_readable(&end.socket, LOOK);
        end.drain();
    }
    let start = clock::now();
    let (mut sent, mut latest, mut refused) = (0, 0, BTreeMap::new());
    let mut datagram = vec![0; options.size];
    while sent < schedule.count {
        let intended = start + schedule.leaves(sent);
        end.receive_until(intended);
        if ended() {
            break;
        }
        let now = clock::now();
        latest = latest.max(now.saturating_sub(intended));
        Header { stream: STREAM, sequence: sent, intended, sent: now }.write(&mut datagram);
        if let Err(error) = end.socket.send_to(&datagram, options.to) {
            *refused.entry(name_of(&error)).or_insert(0) += 1;
        }
        sent += 1;
    }
    let last = clock::now();
    match options.linger {
        Some(seconds) => end.receive_until(last + (seconds * SECOND as f64) as u64),
        None => {
            while !ended() {
                end.receive_until(clock::now() + LOOK);
            }
        }
    }
    let since = |moment: u64| (moment as i64 - start as i64) / MICROSECOND as i64;
    let arrivals = end.arrivals.iter().map(|one| (one.sequence, since(one.sent), since(one.received))).collect();
    print::line(&Seen {
        start,
        interval_ns: schedule.interval,
        sent,
        latest_us: latest / MICROSECOND,
        refused,
        arrivals,
    })
}

/// The length of a datagram that has arrived, and when it did by the kernel's stamp: how late it is read does not matter.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, u64)> {
    let mut control = [0u64; 16]; // aligned as control messages must be
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: an all-zero msghdr is valid: no buffers, no name.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = mem::size_of_val(&control) as _;
    // SAFETY: all pointers of the message are to memory of the given sizes that lives through the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has filled the control messages, and msg_controllen says how many bytes of them.
    let stamp = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let stamped = !header.is_null()
            && ((*header).cmsg_level, (*header).cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
        stamped.then(|| libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned())
    };
    let received =
        stamp.map_or_else(clock::now, |stamp| clock::of_realtime(stamp.tv_sec as u64 * SECOND + stamp.tv_nsec as u64));
    Ok((length as usize, received))
}

/// The error in words without its number: `Network is unreachable`.
fn name_of(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Sleeps until the socket has something to read, at most `nanoseconds`; a signal ends it, too.
fn wait_readable(socket: &UdpSocket, nanoseconds: u64) {
    let mut poll = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let at_most = nanoseconds.min(LOOK);
    let timeout = libc::timespec { tv_sec: 0, tv_nsec: at_most as i64 };
    // SAFETY: one valid pollfd, a valid timespec, and no signal mask.
    unsafe { libc::ppoll(&raw mut poll, 1, &raw const timeout, std::ptr::null()) };
}

fn ended() -> bool {
    ASKED_TO_END.load(Ordering::Relaxed)
}

extern "C" fn note(_signal: libc::c_int) {
    ASKED_TO_END.store(true, Ordering::Relaxed);
}

/// Has SIGTERM end the stream in order, with what was seen printed.
fn end_on_sigterm() {
    let handler = note as extern "C" fn(libc::c_int);
    // SAFETY: the handler only stores to an atomic, which is allowed in one.
    unsafe { libc::signal(libc::SIGTERM, handler as libc::sighandler_t) };
}

/// Has the kernel prefer this process, which takes next to nothing, to others that want its core; root only.
fn go_first() {
    // SAFETY: sets a number of this process only; where it is refused the stream is less even, which it reports.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_pauses_once() {
        let schedule = Schedule { interval: 10, count: 6, before_pause: 3, pause: 100 };
        let times: Vec<u64> = (0..schedule.count).map(|number| schedule.leaves(number)).collect();
        assert_eq!(times, [0, 10, 20, 130, 140, 150]);
    }

    #[test]
    fn an_error_is_named_without_its_number() {
        assert_eq!(name_of(&io::Error::from_raw_os_error(libc::ENETUNREACH)), "Network is unreachable");
    }
}
