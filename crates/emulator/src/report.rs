//! Prints the program's output: JSON lines, described in `docs/emulator.md`.

use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{JoinHandle, spawn};

use emulator_core::stats::{Dropped as ByStage, Stats};
use serde::Serialize;

use crate::histogram::Quantiles;
use crate::port::Faults;

/// One line.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    Ready(Ready),
    Report(Box<Report>),
}

/// Packets are carried from now on.
#[derive(Debug, Serialize)]
pub struct Ready {
    pub version: &'static str,
    pub ports: Vec<String>,
    /// How packets cross each of them.
    pub datapaths: Vec<String>,
    pub directions: Vec<String>,
    pub scheduler: String,
}

/// Everything since the start, but for what is named `last`.
#[derive(Debug, Serialize)]
pub struct Report {
    pub elapsed_us: u64,
    /// When the link's time began last, on the monotonic clock.
    pub zero_ns: u64,
    /// The number of the request that this answers.
    pub request: Option<u64>,
    pub last: bool,
    pub cpu_us: u64,
    pub directions: Vec<Direction>,
    pub ports: Vec<Port>,
}

/// One direction.
#[derive(Debug, Serialize)]
pub struct Direction {
    pub name: String,
    pub units: u64,
    pub packets: u64,
    pub bytes: u64,
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub dropped: Dropped,
    pub queue_bytes: u64,
    pub inside: u64,
    pub lateness_us: Quantiles,
    pub lateness_last_us: Quantiles,
    pub own_lateness_us: Quantiles,
    pub excused_lateness_us: Quantiles,
    pub realised: Stats,
}

/// Dropped packets by cause; the last two are unplanned.
#[derive(Debug, Serialize)]
pub struct Dropped {
    #[serde(flatten)]
    pub by_stage: ByStage,
    pub memory: u64,
    pub oversize: u64,
}

/// One port.
#[derive(Debug, Serialize)]
pub struct Port {
    pub name: String,
    #[serde(flatten)]
    pub faults: Faults,
}

/// Prints lines on a thread of its own, so that a full pipe never holds packets up.
pub struct Printer {
    lines: Option<SyncSender<Line>>,
    thread: Option<JoinHandle<()>>,
}

impl Printer {
    pub fn start() -> Self {
        let (lines, waiting) = sync_channel(16);
        Self { lines: Some(lines), thread: Some(spawn(move || print(&waiting))) }
    }

    /// Prints a line, unless the last sixteen have not been read.
    pub fn line(&self, line: Line) {
        if let Some(lines) = &self.lines {
            // A full channel is a reader who is away; reports are cumulative, so a later one makes up for it.
            let _ = lines.try_send(line);
        }
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        drop(self.lines.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn print(lines: &Receiver<Line>) {
    for line in lines {
        let Ok(mut text) = serde_json::to_vec(&line) else { continue };
        text.push(b'\n');
        let mut out = std::io::stdout().lock();
        // A closed pipe ends the printing, not the carrying.
        if out.write_all(&text).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}
