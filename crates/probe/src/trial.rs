//! One trial against a server: announced, sent on schedule, and counted when the last straggler is in.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use serde::Serialize;

use crate::clock::{self, MILLISECOND, SECOND};
use crate::control::{self, Answer, Asker, Question};
use crate::pace::{self, Schedule};
use crate::packet::{self, Header};
use crate::receive_stats::Count;
use crate::socket;

/// From the announcement to the first datagram.
const LEAD: u64 = 5 * MILLISECOND;

/// How long nothing must have arrived before what is missing counts as lost, in addition to twice the round trip.
const STRAGGLERS: u64 = 200 * MILLISECOND;

/// How long an answer to a datagram that is too large is waited for, in addition to twice the round trip.
const LEARN: u64 = 20 * MILLISECOND;

/// How often the largest datagram is sent: one may be lost.
const TRIES: u32 = 3;

/// How long stragglers are waited for in all; a path that still delivers then holds datagrams for longer than any
/// trial lasts.
const DRAIN: u64 = 10 * SECOND;

/// What a trial found; rates in datagrams a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trial {
    /// Bytes of payload in each datagram.
    pub size: usize,
    /// The rate that was asked for; none when it was as much as could be sent.
    pub asked: Option<f64>,
    /// The rate that the sender kept.
    pub offered: f64,
    /// The rate at which datagrams arrived, from the first to the last.
    pub delivered: f64,
    /// Seconds from the first datagram to after the last.
    pub seconds: f64,
    /// Datagrams that were sent.
    pub sent: u64,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Arrivals of what had arrived before.
    pub duplicates: u64,
    /// Arrivals after one that was sent later.
    pub reordered: u64,
    /// Seconds by which the least one-way delay grew from the first tenth of the datagrams to the last.
    pub growth: Option<f64>,
    /// Datagrams that the sender's kernel refused for want of room; they count as lost.
    pub refused: u64,
    /// Datagrams that the receiver's socket dropped, being full; they count as lost.
    pub dropped: u64,
    /// Seconds by which a datagram left after its time at most.
    pub late: f64,
}

/// The client's end of trials.
pub struct Trials {
    asker: Asker,
    socket: UdpSocket,
    next: u32,
    /// The largest payload that leaves in one packet.
    pub full: usize,
    /// The MTU of the path as the kernel knows it.
    pub mtu: usize,
    /// Whether the path is one of IPv4.
    pub v4: bool,
}

impl Trials {
    /// Trials with the server at that address; an error if it does not answer, or has another clock.
    pub fn with(server: SocketAddr, buffer: usize) -> Result<Trials, String> {
        let socket = socket::connected(server, buffer).map_err(|error| format!("a socket to {server}: {error}"))?;
        let second = socket.try_clone().map_err(|error| format!("a second handle on a socket: {error}"))?;
        let mut asker = Asker::new(second);
        match asker.ask(&Question::Hello)? {
            Answer::Clock(name) if name == control::clock_name() => {}
            _ => return Err("the server's clock is another one, so one-way delays have no meaning".into()),
        }
        let pause = LEARN + 2 * asker.round_trip;
        let mtu = learn_mtu(&socket, server, pause).map_err(|error| format!("the path's MTU: {error}"))?;
        let full = mtu.saturating_sub(socket::headers(server.ip()));
        Ok(Trials { asker, socket, next: clock::now() as u32, full, mtu, v4: server.is_ipv4() })
    }

    /// A trial at `rate` (infinite: as much as can be sent) for so many seconds.
    pub fn carry_out(&mut self, size: usize, rate: f64, seconds: f64) -> Result<Trial, String> {
        let mut schedule = self.announce(size, rate, seconds)?;
        schedule.start = clock::now() + LEAD;
        let sent = pace::send(&self.socket, &schedule, || false)?;
        self.conclude(&schedule, &sent)
    }

    /// Tells the server of a trial; it has no start yet.
    pub fn announce(&mut self, size: usize, rate: f64, seconds: f64) -> Result<Schedule, String> {
        self.next = self.next.wrapping_add(1);
        let time = (seconds * SECOND as f64) as u64;
        let schedule = Schedule { stream: self.next, size, rate, start: 0, time };
        self.asker.ask(&Question::Begin { trial: self.next, datagrams: schedule.datagrams().unwrap_or(0) })?;
        Ok(schedule)
    }

    /// Bytes of the server's answers that have arrived.
    pub fn answers(&self) -> u64 {
        self.asker.answers
    }

    /// A socket to send a schedule with while this is in use otherwise.
    pub fn socket(&self) -> Result<UdpSocket, String> {
        self.socket.try_clone().map_err(|error| format!("a second handle on a socket: {error}"))
    }

    /// Waits for stragglers, and returns what a trial found.
    pub fn conclude(&mut self, schedule: &Schedule, sent: &pace::Sent) -> Result<Trial, String> {
        let (begin, handed) = (clock::now(), sent.datagrams - sent.refused);
        let count = loop {
            let Answer::Count(count) = self.asker.ask(&Question::Count { trial: schedule.stream })? else {
                return Err("the server answered something else than a count".into());
            };
            let waited = clock::now() - begin;
            let enough = STRAGGLERS + 2 * self.asker.round_trip;
            if count.unique >= handed || count.quiet.min(waited) > enough || waited > DRAIN {
                break count;
            }
            clock::sleep_until(clock::now() + 10 * MILLISECOND);
        };
        Ok(found(schedule, sent, &count))
    }
}

/// The path's MTU after the largest datagrams have been sent, so that a node that cannot carry them says so (RFC 1191).
///
/// Some VPNs give their interface a larger MTU than they carry, and answer what is too large as a router does.
fn learn_mtu(socket: &UdpSocket, server: SocketAddr, pause: u64) -> io::Result<usize> {
    let v4 = server.is_ipv4();
    socket::refuse_to_split(socket, v4, true)?;
    let mut mtu = socket::path_mtu(socket, v4)?;
    let mut tries = 0;
    while tries < TRIES {
        let payload = mtu.saturating_sub(socket::headers(server.ip())).clamp(packet::LEN, 65507);
        let mut datagram = vec![0; payload];
        Header { stream: 0, sequence: 0, intended: 0, sent: 0 }.write(&mut datagram);
        let _ = socket.send(&datagram); // refused when the MTU has become smaller meanwhile
        clock::sleep_until(clock::now() + pause);
        let now = socket::path_mtu(socket, v4)?;
        tries = if now == mtu { tries + 1 } else { 0 };
        mtu = now;
    }
    socket::refuse_to_split(socket, v4, false)?;
    Ok(mtu)
}

fn found(schedule: &Schedule, sent: &pace::Sent, count: &Count) -> Trial {
    let seconds = |nanoseconds: u64| nanoseconds as f64 / SECOND as f64;
    let delivered = if count.span > 0 { (count.unique - 1) as f64 / seconds(count.span) } else { 0.0 };
    let lost = sent.datagrams.saturating_sub(count.unique);
    Trial {
        size: schedule.size,
        asked: schedule.rate.is_finite().then_some(schedule.rate),
        offered: sent.rate(),
        delivered,
        seconds: seconds(sent.took),
        sent: sent.datagrams,
        lost,
        duplicates: count.duplicates,
        reordered: count.reordered,
        growth: count.growth.map(|growth| growth as f64 / SECOND as f64),
        refused: sent.refused,
        dropped: count.dropped.min(lost), // a full socket drops questions, too, and its counter knows no difference
        late: seconds(sent.late),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_the_socket_dropped_is_no_datagram_of_the_trial() {
        let schedule = Schedule { stream: 1, size: 64, rate: f64::INFINITY, start: 0, time: SECOND };
        let sent = pace::Sent { datagrams: 10, took: SECOND, ..pace::Sent::default() };
        let count = Count { unique: 8, dropped: 3, ..Count::default() };
        let trial = found(&schedule, &sent, &count);
        assert_eq!((trial.lost, trial.dropped), (2, 2));
    }
}
