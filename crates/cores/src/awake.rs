//! Keeps a core awake with a loop that runs when nothing else wants to, and counts the time that the loop itself used.
//!
//! A virtual core that idles is taken off its host's core, and waking it takes up to milliseconds. A real core sleeps
//! deeper the longer it idles. The loop leaves no idle time. But interrupts and softirq work interrupt the loop, and
//! the kernel bills them to the process that they interrupt. Time that was billed to this process and is not in its own
//! count is that work.

use std::io::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys;

/// Bytes between the counts of two cores: a cache line, so that no core waits for another's.
pub const STRIDE: usize = 64;
/// Rounds that are timed first, to know how long one takes.
const FIRST: usize = 10_000;
/// A round was interrupted if it took this many times the median, and at least `LEAST` nanoseconds. An interrupt that
/// does nothing takes 1 to 3 us.
const TIMES: u64 = 8;
const LEAST: u64 = 500;

/// Never returns, unless the kernel refuses something. The count is in nanoseconds, at `STRIDE * core`.
pub fn keep(core: usize, fd: i32) -> Result<()> {
    sys::die_with_parent()?;
    sys::stay_on(core)?;
    sys::yield_to_all()?;
    let (begin, size) = (core * STRIDE, sys::size(fd)?);
    if begin + size_of::<AtomicU64>() > size {
        return Err(Error::other(format!("no room for core {core} in {size} bytes")));
    }
    let memory = sys::shared(fd, size)?;
    // SAFETY: inside the mapping, as just seen, aligned to 64 bytes, and never unmapped; others only read it.
    let count = unsafe { AtomicU64::from_ptr(memory.add(begin).cast()) };
    let mut rounds: Vec<u64> = (0..FIRST).map(|_| round()).collect();
    rounds.sort_unstable();
    let interrupted = (TIMES * rounds[FIRST / 2]).max(LEAST);
    let (mut last, mut own) = (sys::now(), 0);
    loop {
        // Leaves the core's units to its other thread. A hypervisor may take a guest out that pauses too often; at 22
        // million a second of CPU time the core was interrupted 500 times with it and without (KVM, AMD).
        std::hint::spin_loop();
        let now = sys::now();
        if now - last < interrupted {
            own += now - last;
            count.store(own, Ordering::Relaxed);
        }
        last = now;
    }
}

fn round() -> u64 {
    let begun = sys::now();
    std::hint::spin_loop();
    sys::now() - begun
}
