//! Probes: datagrams a fixed time apart, each way, whose one-way delays are counted from when they were to leave.
//!
//! A probe leaves late if the sender's thread was kept from its core. For a program that waits for the probe this is
//! delay, too, so the delay counts from the moment of the schedule. (Leaving that out is called "coordinated
//! omission".) How late the probes left is printed with the delays.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::batch::{Arrival, Incoming};
use crate::clock::{self, MICROSECOND, MILLISECOND};
use crate::control::{self, Answer, ProbePlan, Question};
use crate::packet::{self, Header};
use crate::print;

/// How long before a probe's moment its sender stops sleeping: what a wake-up takes on a machine that is not idle.
const SPIN: u64 = 80 * MICROSECOND;

/// The probes of one run that arrived at this end.
pub struct Arrivals {
    plan: ProbePlan,
    delays: Vec<Option<i64>>,
    lateness: Vec<u64>,
    arrived: u64,
    duplicates: u64,
    last: u64,
}

/// The delays of one way of a run, as they are printed; in nanoseconds, null for a probe that did not arrive.
#[derive(Serialize)]
struct Delays<'a> {
    kind: &'static str,
    run: u32,
    direction: &'static str,
    load: f64,
    sizes: &'a [usize],
    interval_ns: u64,
    duplicates: u64,
    late_ns: Lateness,
    delays_ns: &'a [Option<i64>],
}

/// By how much the arrived probes left after their moment, in nanoseconds.
#[derive(Serialize)]
struct Lateness {
    p50: u64,
    p99: u64,
    max: u64,
}

impl Arrivals {
    /// Of a run that has that plan.
    pub fn new(plan: ProbePlan) -> Arrivals {
        let probes = plan.probes as usize;
        Arrivals {
            plan,
            delays: vec![None; probes],
            lateness: Vec::new(),
            arrived: 0,
            duplicates: 0,
            last: clock::now(),
        }
    }

    /// Takes a probe that arrived at `now` into account.
    pub fn arrived(&mut self, header: &Header, now: u64) {
        let Some(delay) = self.delays.get_mut(header.sequence as usize) else { return };
        if header.stream != self.plan.run {
            return;
        }
        if delay.is_some() {
            self.duplicates += 1;
            return;
        }
        *delay = Some(now.wrapping_sub(header.intended) as i64);
        self.lateness.push(header.sent.saturating_sub(header.intended));
        self.arrived += 1;
        self.last = now;
    }

    /// How many arrived, and how many nanoseconds ago the last.
    pub fn progress(&self, now: u64) -> (u64, u64) {
        (self.arrived, now.saturating_sub(self.last))
    }

    /// Prints all delays on a line.
    pub fn print(&mut self, direction: &'static str) -> Result<(), String> {
        self.lateness.sort_unstable();
        let at = |share: f64| {
            let rank = (share * self.lateness.len() as f64).ceil() as usize; // nearest rank
            self.lateness.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        print::line(&Delays {
            kind: "delays",
            run: self.plan.run,
            direction,
            load: self.plan.load,
            sizes: &self.plan.sizes,
            interval_ns: self.plan.interval,
            duplicates: self.duplicates,
            late_ns: Lateness { p50: at(0.5), p99: at(0.99), max: at(1.0) },
            delays_ns: &self.delays,
        })
    }
}

/// Sends a run's probes to `to` (none: the peer that the socket is connected to), the first at `start`, as long as
/// `wanted` says so.
pub fn send(
    socket: &UdpSocket,
    to: Option<SocketAddr>,
    plan: &ProbePlan,
    start: u64,
    wanted: impl Fn() -> bool,
) -> Result<(), String> {
    clock::sharpen();
    let largest = plan.sizes.iter().copied().max().unwrap_or(packet::LEN);
    let mut room = vec![0; largest];
    for sequence in 0..plan.probes {
        let intended = start + sequence * plan.interval;
        let datagram = &mut room[..plan.sizes[sequence as usize % plan.sizes.len()]];
        clock::wait_until(intended, SPIN);
        if !wanted() {
            break;
        }
        Header { stream: plan.run, sequence, intended, sent: clock::now() }.write(datagram);
        let done = to.map_or_else(|| socket.send(datagram), |to| socket.send_to(datagram, to));
        if let Err(error) = done
            && !matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ECONNREFUSED | libc::EINTR))
        {
            return Err(format!("sending a probe of {} B: {error}", datagram.len()));
        }
    }
    Ok(())
}

/// The server's end: sends back and notes what arrives, one run after the other.
pub fn serve(socket: &UdpSocket) -> Result<(), String> {
    let mut incoming = Incoming::new();
    let mut current: Option<(Arrivals, bool)> = None; // the run, and whether it has been printed
    let running = Arc::new(AtomicU32::new(0)); // ends the sender of a run that another follows
    loop {
        let mut asked = Vec::new();
        let mut each = |arrival: Arrival<'_>| match (Header::read(arrival.beginning), &mut current) {
            (Some(header), Some((arrivals, _))) => arrivals.arrived(&header, clock::now()),
            (Some(_), None) => {} // of a client that was here before this server
            (None, _) => asked.extend(control::question(arrival.beginning).map(|one| (one, arrival.from))),
        };
        incoming.receive(socket, &mut each).map_err(|error| format!("receiving probes: {error}"))?;
        for ((id, question), from) in asked {
            let answer = reply(socket, &mut current, &running, question, from)?;
            let _ = socket.send_to(&control::answer(id, answer), from); // a lost answer is asked for again
        }
    }
}

fn reply(
    socket: &UdpSocket,
    current: &mut Option<(Arrivals, bool)>,
    running: &Arc<AtomicU32>,
    question: Question,
    from: SocketAddr,
) -> Result<Answer, String> {
    let known = current.as_ref().map(|(arrivals, _)| arrivals.plan.run);
    match (question, &mut *current) {
        (Question::Hello, _) => Ok(Answer::Clock(control::clock_name())),
        (Question::Probe(plan), _) if Some(plan.run) == known => Ok(Answer::Done),
        (Question::Probe(plan), _) => {
            if plan.sizes.is_empty() || plan.sizes.iter().any(|size| !(packet::LEN..=65507).contains(size)) {
                return Ok(Answer::No(format!("probes have {} to 65507 B", packet::LEN)));
            }
            let socket = socket.try_clone().map_err(|error| format!("a second handle on a socket: {error}"))?;
            *current = Some((Arrivals::new(plan.clone()), false));
            running.store(plan.run, Ordering::Relaxed);
            let running = Arc::clone(running);
            thread::spawn(move || {
                let wanted = || running.load(Ordering::Relaxed) == plan.run;
                if let Err(why) = send(&socket, Some(from), &plan, plan.back, wanted) {
                    eprintln!("tunnelmark-probe: {why}");
                }
            });
            Ok(Answer::Done)
        }
        (Question::Progress { run }, Some((arrivals, _))) if Some(run) == known => {
            let (arrived, quiet) = arrivals.progress(clock::now());
            Ok(Answer::Progress { arrived, quiet })
        }
        (Question::Finish { run }, Some((arrivals, printed))) if Some(run) == known => {
            if !*printed {
                arrivals.print("forward")?;
                *printed = true;
            }
            Ok(Answer::Done)
        }
        (Question::Progress { run } | Question::Finish { run }, _) => Ok(Answer::No(format!("there is no run {run}"))),
        (Question::Begin { .. } | Question::Count { .. }, _) => Ok(Answer::No("trials have the port before".into())),
    }
}

/// The client's end of receiving: notes the probes that come back until `over` says that it is enough.
pub fn collect(socket: &UdpSocket, arrivals: &Mutex<Arrivals>, over: impl Fn() -> bool) -> Result<(), String> {
    let timeout = Some(Duration::from_nanos(5 * MILLISECOND));
    socket.set_read_timeout(timeout).map_err(|error| format!("a socket's timeout: {error}"))?;
    let mut incoming = Incoming::new();
    while !over() {
        let mut each = |arrival: Arrival<'_>| {
            if let Some(header) = Header::read(arrival.beginning) {
                arrivals.lock().expect("no holder panics").arrived(&header, clock::now());
            }
        };
        incoming.receive(socket, &mut each).map_err(|error| format!("receiving probes: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(probes: u64) -> ProbePlan {
        ProbePlan { run: 1, load: 0.0, sizes: vec![100, 200], probes, interval: 1000, forward: 0, back: 0 }
    }

    #[test]
    fn a_delay_counts_from_the_moment_at_which_the_probe_was_to_leave() {
        let mut arrivals = Arrivals::new(plan(3));
        arrivals.arrived(&Header { stream: 1, sequence: 1, intended: 1000, sent: 5000 }, 7000);
        assert_eq!(arrivals.delays, [None, Some(6000), None]);
        assert_eq!(arrivals.lateness, [4000]);
    }

    #[test]
    fn duplicates_and_probes_of_other_runs_change_nothing() {
        let mut arrivals = Arrivals::new(plan(3));
        let header = Header { stream: 1, sequence: 0, intended: 0, sent: 0 };
        arrivals.arrived(&header, 10);
        arrivals.arrived(&header, 20);
        arrivals.arrived(&Header { stream: 2, sequence: 2, ..header }, 30);
        arrivals.arrived(&Header { sequence: 3, ..header }, 30);
        assert_eq!((arrivals.delays.as_slice(), arrivals.duplicates), ([Some(10), None, None].as_slice(), 1));
        assert_eq!(arrivals.progress(25), (1, 15));
    }
}
