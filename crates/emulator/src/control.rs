//! Receives what the program is asked: by standard input, and by signals.

use std::io::{BufRead, Read, Result, Write, stdin};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::blame::Pauses;
use crate::sys;

/// What was asked since the last look.
#[derive(Default)]
struct Asked {
    end: AtomicBool,
    zero: AtomicBool,
    /// The number of the last request for a report that has not been answered; 0 if there is none.
    report: AtomicU64,
    told: AtomicBool,
    pauses: Mutex<Pauses>,
}

/// Requests from outside.
pub struct Control {
    asked: Arc<Asked>,
    bell: std::fs::File,
    signals: std::fs::File,
}

impl Control {
    /// Listens to standard input on a thread of its own. `signals` is from [`sys::end_signals`].
    pub fn start(signals: OwnedFd) -> Result<Self> {
        let bell = std::fs::File::from(sys::bell()?);
        let asked = Arc::new(Asked::default());
        let (there, ring) = (asked.clone(), bell.try_clone()?);
        std::thread::spawn(move || listen(&there, ring));
        Ok(Self { asked, bell, signals: signals.into() })
    }

    pub fn fds(&self) -> [RawFd; 2] {
        [self.bell.as_raw_fd(), self.signals.as_raw_fd()]
    }

    /// Silences the bell, and takes note of signals. Not for every packet: these are system calls.
    pub fn look(&mut self) {
        let _ = self.bell.read(&mut [0; 8]);
        if self.signals.read(&mut [0; size_of::<libc::signalfd_siginfo>()]).is_ok() {
            self.asked.end.store(true, Ordering::Relaxed);
        }
    }

    pub fn end(&self) -> bool {
        self.asked.end.load(Ordering::Relaxed)
    }

    /// Whether the link's time is to start again. To be asked after [`Control::report`], like [`Control::pauses`].
    pub fn zero(&self) -> bool {
        self.asked.zero.swap(false, Ordering::Relaxed)
    }

    /// The number of a report that was asked for; what was asked before it, is seen after this.
    pub fn report(&self) -> Option<u64> {
        Some(self.asked.report.swap(0, Ordering::Acquire)).filter(|&number| number > 0)
    }

    /// Pauses of the machine that were reported.
    pub fn pauses(&self) -> Option<Pauses> {
        let told = self.asked.told.swap(false, Ordering::Acquire);
        told.then(|| std::mem::take(&mut *self.asked.pauses.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn listen(asked: &Asked, mut bell: std::fs::File) {
    let mut ring = || {
        let _ = bell.write_all(&1u64.to_ne_bytes());
    };
    for line in stdin().lock().lines() {
        let Ok(line) = line else { break };
        match line.trim() {
            "zero" => asked.zero.store(true, Ordering::Relaxed),
            "" => {}
            other => match other.split_once(' ') {
                Some(("report", number)) => match number.parse() {
                    Ok(0) | Err(_) => eprintln!("tunnelmark-emulator: report: {number:?} is not a number from 1"),
                    Ok(number) => asked.report.store(number, Ordering::Release),
                },
                Some(("pauses", pauses)) => match serde_json::from_str::<Pauses>(pauses) {
                    Ok(pauses) => {
                        asked.pauses.lock().unwrap_or_else(PoisonError::into_inner).add(pauses);
                        asked.told.store(true, Ordering::Release);
                    }
                    Err(error) => eprintln!("tunnelmark-emulator: pauses: {error}"),
                },
                _ => eprintln!("tunnelmark-emulator: unknown command {other:?}; there are zero, pauses and report"),
            },
        }
        ring();
    }
    asked.end.store(true, Ordering::Relaxed);
    ring();
}
