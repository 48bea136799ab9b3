//! Waits: asleep until shortly before the next departure, then awake.
//!
//! Sleeping alone is 30 us late at the median on the machine this was measured on, so a thread with little to
//! do spins for the rest. A wake-up there costs 5 to 10 us (virtual machine: timers and interrupts to other
//! cores leave the guest), so a thread with much to do sleeps longer and finds several packets, as a network
//! card that coalesces interrupts. And the kernel stops a real-time thread that takes more than 95 % of a core
//! (`sched_rt_runtime_us`) for 50 ms, so a thread that is never idle takes short rests of its own.

use std::io::Result;

use crate::sys;

/// The share of time that a real-time thread must sleep, and how long it may be short of it. The lab gives its group
/// 94 % of a core (`linux/cgroups.py`). A group that has used all of it does not run for the rest of the second.
const IDLE: f64 = 0.10;
const DEBT: f64 = 60_000.0;
/// The load, which is the time awake without that spent spinning, is measured over windows of this length; above this
/// share packets are coalesced.
const WINDOW: u64 = 5_000_000;
const LOADED: f64 = 0.6;
/// Coalescing sleeps this long: with the wake-up, packets are up to 60 us late.
const COALESCE: u64 = 30_000;
/// The budget for spinning is filled up to this much.
const FULL: f64 = 20e6;
/// Awake for so long in a burst, it sleeps once as if it coalesced, even if packets are due: who receives them may be waiting
/// for this core. A burst of 64 KiB takes 0.5 ms at 1 Gbit/s. Where all of it was there before its receiver read any, the
/// kernel took that for a slow reader and left TCP's window at 64 KiB (since Linux 6.16 `tcp_rcv_space_adjust()` subtracts
/// what waits to be read), so that a bare link of 50 ms carried 10 Mbit/s in place of 150 and more.
const BURST: u64 = 100_000;

/// How the loop waits.
pub struct Pace {
    spin_ns: u64,
    share: f64,
    budget: f64,
    /// The kernel stops a real-time thread that never rests.
    limited: bool,
    debt: f64,
    counted: u64,
    window: u64,
    /// Of the window: asleep, or spinning with nothing to do.
    free: u64,
    spinning: bool,
    loaded: bool,
    /// When the last sleep ended.
    woke: u64,
}

impl Pace {
    pub fn new(spin_us: u64, share: f64, fifo: bool) -> Self {
        let limit = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us");
        let limited = fifo && limit.map_or(true, |text| text.trim() != "-1");
        let now = sys::now();
        Self {
            spin_ns: spin_us * 1000,
            share,
            budget: FULL,
            limited,
            debt: 0.0,
            counted: now,
            window: now,
            free: 0,
            spinning: false,
            loaded: false,
            woke: now,
        }
    }

    /// Waits until a descriptor is ready or `until` is near; true if the thread slept.
    ///
    /// `busy`: packets came in just now, so more may be waiting.
    pub fn wait(&mut self, fds: &mut [libc::pollfd], now: u64, until: u64, busy: bool) -> Result<bool> {
        // Awake since the last sleep, or since the last call.
        let passed = (now - self.counted) as f64;
        self.counted = now;
        self.budget = (self.budget + passed * self.share).min(FULL);
        self.debt += passed * IDLE;
        if std::mem::take(&mut self.spinning) && !busy {
            self.free += passed as u64;
        }
        if now - self.window > WINDOW {
            let awake = 1.0 - self.free as f64 / (now - self.window) as f64;
            self.loaded = awake > LOADED;
            (self.window, self.free) = (now, 0);
        }
        if self.limited && self.debt > DEBT {
            return self.sleep(&mut [], now, DEBT as u64);
        }
        if !self.loaded && now - self.woke > BURST {
            return self.sleep(&mut [], now, COALESCE);
        }
        if busy || until <= now {
            return Ok(false);
        }
        let left = until - now;
        if self.loaded {
            return if left > 2 * COALESCE { self.sleep(fds, now, left) } else { self.sleep(&mut [], now, COALESCE) };
        }
        let early = if self.budget > 0.0 { self.spin_ns } else { 0 };
        if left <= early {
            self.budget -= passed;
            self.spinning = true;
            return Ok(false);
        }
        self.sleep(fds, now, left - early)
    }

    fn sleep(&mut self, fds: &mut [libc::pollfd], now: u64, ns: u64) -> Result<bool> {
        sys::wait(fds, Some(ns))?;
        self.counted = sys::now();
        self.woke = self.counted;
        // What the call itself takes is not sleep: about 2 us with a switch to another thread.
        let slept = (self.counted - now).saturating_sub(2_000);
        self.free += slept;
        self.budget = (self.budget + slept as f64 * self.share).min(FULL);
        self.debt = (self.debt - slept as f64).max(-DEBT);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn just_woken(loaded: bool) -> Pace {
        Pace { loaded, ..Pace::new(80, 0.1, false) }
    }

    #[test]
    fn a_burst_is_carried_without_a_sleep_at_first() {
        let mut pace = just_woken(false);
        let now = pace.woke + BURST / 2;
        assert!(!pace.wait(&mut [], now, now, true).unwrap());
        assert!(!pace.wait(&mut [], now, now, false).unwrap());
    }

    #[test]
    fn a_burst_that_goes_on_leaves_the_core_to_its_receiver() {
        let mut pace = just_woken(false);
        let now = sys::now();
        pace.woke = now - BURST - 1;
        assert!(pace.wait(&mut [], now, now, true).unwrap());
        assert!(pace.woke - now >= COALESCE);
        let woken = pace.woke;
        assert!(!pace.wait(&mut [], woken, now, true).unwrap(), "once for each such time");
    }

    #[test]
    fn a_thread_with_much_to_do_rests_by_its_share_alone() {
        let mut pace = just_woken(true);
        let now = pace.woke + BURST + 1;
        assert!(!pace.wait(&mut [], now, now, true).unwrap());
    }
}
