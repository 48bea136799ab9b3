//! Receives what the program is asked: by standard input, and by signals.

use std::io::{BufRead, Read, Result, Write, stdin};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::blame::Pauses;
use crate::sys;

/// What was asked since the last look.
#[derive(Default)]
struct Asked {
    end: AtomicBool,
    zero: AtomicBool,
    report: AtomicBool,
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

    pub fn zero(&self) -> bool {
        self.asked.zero.swap(false, Ordering::Relaxed)
    }

    pub fn report(&self) -> bool {
        self.asked.report.swap(false, Ordering::Acquire)
    }

    /// Pauses of the machine that were reported. To be asked after [`Control::report`]: pauses come before a report.
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
            "report" => asked.report.store(true, Ordering::Release),
            "" => {}
            other => match other.strip_prefix("pauses ").map(serde_json::from_str::<Pauses>) {
                Some(Ok(pauses)) => {
                    asked.pauses.lock().unwrap_or_else(PoisonError::into_inner).add(pauses);
                    asked.told.store(true, Ordering::Release);
                }
                Some(Err(error)) => eprintln!("tunnelmark-emulator: pauses: {error}"),
                None => eprintln!("tunnelmark-emulator: unknown command {other:?}; there are zero, pauses and report"),
            },
        }
        ring();
    }
    asked.end.store(true, Ordering::Relaxed);
    ring();
}
