//! Runs the clocks that see when a core pauses: threads of the highest priority that sleep and see how late they wake.

use std::io::{BufRead, Error, Result, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde::Serialize;

use crate::sys;

/// Nanoseconds between two wake-ups, at least and at most. A shorter pause of a core may not be seen.
const EVERY: (u64, u64) = (500_000, 4_000_000);
/// The share of a core that its clock may cost. A wake-up takes 3 us on hardware and 20 us in a virtual machine whose
/// timers leave the guest, so this share decides how often the clock can wake.
const COST: f64 = 0.008;
/// Wake-ups after which the time between two is chosen again.
const ROUND: u64 = 64;
/// Nanoseconds of lateness from which a wake-up shows a pause of the core. A running machine is mostly 0.1 ms late.
const PAUSE: u64 = 500_000;
/// The most wake-ups that are kept until the next report: two cores for half an hour.
const MOST: usize = 8 << 20;

/// One wake-up: the core, when it ran last, when this was due, when it came (nanoseconds).
#[derive(Clone, Copy)]
struct Wakeup {
    core: usize,
    ran: u64,
    due: u64,
    woke: u64,
}

/// What happened since the report before. Times are nanoseconds of the monotonic clock.
#[derive(Serialize)]
struct Report {
    begin: u64,
    end: u64,
    cpu_us: u64,
    wakeups_us: Quantiles,
    /// Core; when it ran last, before; when it was to run; when it did.
    pauses: Vec<(usize, u64, u64, u64)>,
}

/// Lateness of wake-ups in microseconds.
#[derive(Serialize)]
struct Quantiles {
    count: usize,
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

/// Watches all cores that this process may use, until standard input ends. The first line of output, `{"ready": ...}`,
/// says that all clocks run. Each line `report` on standard input is answered by a line of JSON. `procs` is the
/// `cgroup.procs` of a group to join before.
pub fn watch(procs: Option<&str>) -> Result<()> {
    sys::die_with_parent()?;
    if let Some(procs) = procs {
        // If this is refused, the priority may be granted all the same; if it is not, an error says so.
        let _ = std::fs::write(procs, "0");
    }
    let cores = sys::cores()?;
    let (tell, told) = channel();
    let (say, said) = channel();
    for &core in &cores {
        let (tell, say) = (tell.clone(), say.clone());
        std::thread::spawn(move || {
            let ready = sys::stay_on(core).and_then(|()| sys::go_first());
            let goes = ready.is_ok();
            let _ = say.send(ready);
            if goes {
                tick(core, &tell);
            }
        });
    }
    for _ in &cores {
        said.recv().map_err(Error::other)??;
    }
    println!("{}", serde_json::json!({"ready": {"cores": cores, "pause_us": PAUSE / 1000}}));
    answer(&told, &asked())
}

/// Wakes up again and again. Nothing here waits for a thread of less priority: a channel's sender takes no lock.
fn tick(core: usize, tell: &Sender<Wakeup>) {
    let (mut ran, mut every) = (sys::now(), EVERY.0);
    let mut due = ran;
    loop {
        let before = sys::used_by_thread();
        for _ in 0..ROUND {
            due += every;
            sys::sleep_until(due);
            let woke = sys::now();
            if tell.send(Wakeup { core, ran, due, woke }).is_err() {
                return;
            }
            ran = woke;
            // What was missed is one pause, not many.
            due = due.max(woke.saturating_sub(every));
        }
        every = period((sys::used_by_thread() - before) / ROUND);
    }
}

/// The fewest nanoseconds between two wake-ups of `each` nanoseconds that cost no more than `COST` of a core.
fn period(each: u64) -> u64 {
    ((each as f64 / COST) as u64).clamp(EVERY.0, EVERY.1)
}

/// The lines of standard input, read by a thread of their own; the channel ends with them.
fn asked() -> Receiver<String> {
    let (ask, asked) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if ask.send(line).is_err() {
                return;
            }
        }
    });
    asked
}

fn answer(told: &Receiver<Wakeup>, asked: &Receiver<String>) -> Result<()> {
    let (mut seen, mut begin) = (Seen::default(), sys::now());
    loop {
        let line = asked.recv_timeout(Duration::from_secs(1));
        let end = seen.take(told, sys::now);
        match line {
            Ok(line) if line.trim() == "report" => {
                let pauses = std::mem::take(&mut seen.pauses);
                let wakeups_us = quantiles(&mut seen.lateness);
                let report = Report { begin, end, cpu_us: sys::used() / 1000, wakeups_us, pauses };
                seen.lateness.clear();
                begin = end;
                let mut out = std::io::stdout().lock();
                writeln!(out, "{}", serde_json::json!({"report": report}))?;
                out.flush()?;
            }
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => eprintln!("tunnelmark-cores: unknown command {line:?}; there is report"),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// What came since the report before: the lateness of each wake-up, and the pauses as a report has them.
#[derive(Default)]
struct Seen {
    lateness: Vec<u64>,
    pauses: Vec<(usize, u64, u64, u64)>,
}

impl Seen {
    /// Takes what has come. Returns a moment up to which nothing is missing: it is asked for before, because this
    /// thread may lose its core at any point, and what comes meanwhile would lie in a time that is said to be looked at.
    fn take(&mut self, told: &Receiver<Wakeup>, now: impl FnOnce() -> u64) -> u64 {
        let end = now();
        for wakeup in told.try_iter() {
            let late = wakeup.woke.saturating_sub(wakeup.due);
            if self.lateness.len() < MOST {
                self.lateness.push(late);
            }
            if late > PAUSE {
                self.pauses.push((wakeup.core, wakeup.ran, wakeup.due, wakeup.woke));
            }
        }
        end
    }
}

fn quantiles(lateness: &mut [u64]) -> Quantiles {
    lateness.sort_unstable();
    let at = |share: f64| {
        let rank = (share * lateness.len() as f64).ceil() as usize;
        lateness.get(rank.saturating_sub(1)).map_or(0.0, |&ns| ns as f64 / 1000.0)
    };
    Quantiles { count: lateness.len(), p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_wakes_as_often_as_it_may_cost() {
        assert_eq!(period(0), 500_000, "no more often than this, however cheap it is");
        assert_eq!(period(3_000), 500_000);
        for each in [4_000, 8_000, 20_000, 32_000] {
            assert_eq!(each as f64 / period(each) as f64, COST);
        }
        assert_eq!(period(100_000), 4_000_000, "no pause of so long goes unseen, however dear it is");
    }

    #[test]
    fn no_pause_up_to_the_end_of_a_report_is_missing_in_it() {
        let (tell, told) = channel();
        let mut seen = Seen::default();
        let end = seen.take(&told, || {
            tell.send(Wakeup { core: 1, ran: 0, due: 1_000_000, woke: 9_000_000 }).unwrap();
            10_000_000
        });
        assert_eq!((end, seen.pauses), (10_000_000, vec![(1, 0, 1_000_000, 9_000_000)]));
    }

    #[test]
    fn quantiles_are_ranks() {
        let mut lateness: Vec<u64> = (1..=1000).rev().map(|us| us * 1000).collect();
        let found = quantiles(&mut lateness);
        assert_eq!((found.count, found.p50, found.p99, found.p999, found.max), (1000, 500.0, 990.0, 999.0, 1000.0));
        assert_eq!(quantiles(&mut []).max, 0.0);
    }
}
