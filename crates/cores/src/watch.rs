//! Owns the clocks that tell when a core stood still: threads of the highest priority that sleep and see how late they wake.

use std::io::{BufRead, Error, Result, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde::Serialize;

use crate::sys;

/// Nanoseconds between two wake-ups. A core that stood still for less may not be seen.
const EVERY: u64 = 500_000;
/// Nanoseconds by which a wake-up is late when the core stood still: it is 0.1 ms mostly, on a machine that runs.
const PAUSE: u64 = 500_000;
/// Wake-ups that are kept at most until somebody asks: two cores for half an hour.
const MOST: usize = 8 << 20;

/// One wake-up: the core, when it was due, and by how much it was late (nanoseconds).
#[derive(Clone, Copy)]
struct Wakeup {
    core: usize,
    due: u64,
    late: u64,
}

/// What happened since the report before. Times are nanoseconds of the monotonic clock.
#[derive(Serialize)]
struct Report {
    begin: u64,
    end: u64,
    cpu_us: u64,
    wakeups_us: Quantiles,
    /// Core, start, length.
    pauses: Vec<(usize, u64, u64)>,
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

/// Watches all cores that this process may use, until standard input ends. Each line `report` there is answered by one
/// of JSON; the first, `{"ready": ...}`, says that all clocks go.
pub fn watch() -> Result<()> {
    sys::die_with_parent()?;
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
    println!("{}", serde_json::json!({"ready": {"cores": cores, "every_us": EVERY / 1000, "pause_us": PAUSE / 1000}}));
    answer(&told, &asked())
}

/// Wakes up again and again. Nothing here waits for a thread of less priority: a channel's sender takes no lock.
fn tick(core: usize, tell: &Sender<Wakeup>) {
    let mut due = sys::now();
    loop {
        due += EVERY;
        sys::sleep_until(due);
        let now = sys::now();
        let late = now.saturating_sub(due);
        if tell.send(Wakeup { core, due, late }).is_err() {
            return;
        }
        // What was missed is one pause, not many.
        due = due.max(now.saturating_sub(EVERY));
    }
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
    let (mut lateness, mut pauses, mut begin) = (vec![], vec![], sys::now());
    loop {
        let line = asked.recv_timeout(Duration::from_secs(1));
        for wakeup in told.try_iter() {
            if lateness.len() < MOST {
                lateness.push(wakeup.late);
            }
            if wakeup.late > PAUSE {
                pauses.push((wakeup.core, wakeup.due, wakeup.late));
            }
        }
        match line {
            Ok(line) if line.trim() == "report" => {
                let end = sys::now();
                let pauses = std::mem::take(&mut pauses);
                let report =
                    Report { begin, end, cpu_us: sys::used() / 1000, wakeups_us: quantiles(&mut lateness), pauses };
                lateness.clear();
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
    fn quantiles_are_ranks() {
        let mut lateness: Vec<u64> = (1..=1000).rev().map(|us| us * 1000).collect();
        let found = quantiles(&mut lateness);
        assert_eq!((found.count, found.p50, found.p99, found.p999, found.max), (1000, 500.0, 990.0, 999.0, 1000.0));
        assert_eq!(quantiles(&mut []).max, 0.0);
    }
}
