//! The open-loop sender of load: datagram k leaves at its time or as soon after it as the machine can, never before.
//!
//! It sleeps between datagrams and does not spin, because it shares a node's cores with the VPN. A sleep takes some
//! tens of microseconds more than asked, so above about 20,000 datagrams a second those that fell due meanwhile leave
//! together.

use std::io;
use std::net::UdpSocket;

use crate::batch::{BATCH, Outgoing};
use crate::clock::{self, MICROSECOND, SECOND};
use crate::packet::Header;

/// The shortest sleep that is worth it.
const NAP: u64 = 30 * MICROSECOND;

/// What is to be sent: datagrams of `size` bytes of payload at `rate` a second.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The number of the trial, for the headers.
    pub stream: u32,
    /// Bytes of payload.
    pub size: usize,
    /// Datagrams a second; infinite for as many as can be sent.
    pub rate: f64,
    /// When the first is to leave, in nanoseconds.
    pub start: u64,
    /// For how many nanoseconds.
    pub time: u64,
}

impl Schedule {
    /// How many datagrams there are; `None` if the rate is infinite.
    pub fn datagrams(&self) -> Option<u64> {
        self.rate.is_finite().then(|| ((self.time as f64 * self.rate / SECOND as f64) as u64).max(1))
    }

    /// When datagram k is to leave.
    fn moment(&self, sequence: u64) -> u64 {
        self.start + (sequence as f64 * SECOND as f64 / self.rate) as u64
    }

    /// How many were to have left by `now`.
    fn due(&self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.start);
        match self.datagrams() {
            Some(all) => ((passed as f64 * self.rate / SECOND as f64) as u64 + 1).min(all),
            None if passed < self.time => u64::MAX,
            None => 0,
        }
    }
}

/// What became of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sent {
    /// Datagrams that were handed to the kernel, in all.
    pub datagrams: u64,
    /// Those of them that it refused for want of room.
    pub refused: u64,
    /// Nanoseconds from the schedule's start to the end of its last slot, as it turned out.
    pub took: u64,
    /// By how many nanoseconds a datagram left after its time at most.
    pub late: u64,
}

impl Sent {
    /// Datagrams a second that were really offered.
    pub fn rate(&self) -> f64 {
        self.datagrams as f64 * SECOND as f64 / self.took.max(1) as f64
    }
}

/// Carries a schedule out over a connected socket; `stop` is asked now and then whether to end early.
pub fn send(socket: &UdpSocket, schedule: &Schedule, stop: impl Fn() -> bool) -> Result<Sent, String> {
    clock::sharpen();
    let mut outgoing = Outgoing::new(schedule.size);
    let mut sent = Sent::default();
    let end = schedule.datagrams();
    clock::sleep_until(schedule.start);
    let mut now = clock::now();
    while end.is_none_or(|all| sent.datagrams < all) && !stop() {
        let due = schedule.due(now);
        if due <= sent.datagrams {
            if end.is_none() {
                break; // the time is over
            }
            clock::sleep_until(schedule.moment(sent.datagrams).max(now + NAP));
            now = clock::now();
            continue;
        }
        let batch = (due - sent.datagrams).min(BATCH as u64) as usize;
        for place in 0..batch {
            let sequence = sent.datagrams + place as u64;
            let intended = if end.is_some() { schedule.moment(sequence) } else { now };
            Header { stream: schedule.stream, sequence, intended, sent: now }.write(outgoing.datagram(place));
            sent.late = sent.late.max(now.saturating_sub(intended));
        }
        sent.refused += all(socket, &mut outgoing, batch)?;
        sent.datagrams += batch as u64;
        now = clock::now();
    }
    let planned = end.filter(|all| *all == sent.datagrams).map_or(0, |all| schedule.moment(all) - schedule.start);
    sent.took = planned.max(now.saturating_sub(schedule.start));
    Ok(sent)
}

/// Hands a whole batch to the kernel; how many it refused.
fn all(socket: &UdpSocket, outgoing: &mut Outgoing, batch: usize) -> Result<u64, String> {
    let (mut gone, mut refused) = (0, 0);
    while gone < batch {
        match outgoing.send(socket, gone, batch) {
            Ok(count) => gone += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Refused: an ICMP error for what was sent before, reported once.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                gone += 1;
                refused += 1;
            }
            Err(error) => return Err(format!("sending: {error}")),
        }
    }
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MILLISECOND;

    fn schedule(rate: f64, time: u64) -> Schedule {
        Schedule { stream: 1, size: 64, rate, start: clock::now(), time }
    }

    fn pair() -> (UdpSocket, UdpSocket) {
        let target = UdpSocket::bind("127.0.0.1:0").unwrap();
        let source = UdpSocket::bind("127.0.0.1:0").unwrap();
        source.connect(target.local_addr().unwrap()).unwrap();
        (source, target)
    }

    #[test]
    fn all_datagrams_are_due_one_slot_before_the_end() {
        let plan = Schedule { start: 1000, ..schedule(1000.0, SECOND) };
        assert_eq!(plan.datagrams(), Some(1000));
        assert_eq!([plan.due(0), plan.due(1000)], [1, 1]);
        assert_eq!(plan.due(1000 + MILLISECOND - 1), 1);
        assert_eq!(plan.due(1000 + MILLISECOND), 2);
        assert_eq!(plan.due(1000 + 10 * SECOND), 1000);
        assert_eq!(plan.moment(999), 1000 + 999 * MILLISECOND);
    }

    #[test]
    fn the_rate_is_kept_and_no_datagram_leaves_early() {
        let (source, target) = pair();
        let plan = schedule(2000.0, 100 * MILLISECOND);
        let sent = send(&source, &plan, || false).unwrap();
        assert_eq!(sent.datagrams, 200);
        assert!(sent.rate() <= 2000.5, "{sent:?}");
        let mut room = [0; 64];
        for sequence in 0..200 {
            target.recv(&mut room).unwrap();
            let header = Header::read(&room).unwrap();
            assert_eq!((header.sequence, header.stream), (sequence, 1));
            assert!(header.sent >= header.intended);
        }
    }

    #[test]
    fn without_a_rate_it_sends_what_it_can_for_that_time() {
        let (source, _target) = pair();
        let plan = Schedule { start: 1000, ..schedule(f64::INFINITY, 20 * MILLISECOND) };
        assert_eq!((plan.due(1000 + plan.time - 1), plan.due(1000 + plan.time)), (u64::MAX, 0));
        let sent = send(&source, &schedule(f64::INFINITY, 20 * MILLISECOND), || false).unwrap();
        assert!(sent.took >= 20 * MILLISECOND, "{sent:?}");
    }

    #[test]
    fn it_ends_when_it_is_asked_to() {
        let (source, _target) = pair();
        assert_eq!(send(&source, &schedule(1000.0, SECOND), || true).unwrap().datagrams, 0);
    }
}
