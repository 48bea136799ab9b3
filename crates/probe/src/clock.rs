//! The one clock: nanoseconds of CLOCK_MONOTONIC, and waiting until a moment of it.

use std::hint;
use std::mem::MaybeUninit;
use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// Nanoseconds in a millisecond.
pub const MILLISECOND: u64 = 1_000_000;

/// Nanoseconds in a microsecond.
pub const MICROSECOND: u64 = 1_000;

/// How often the two clocks are read together at most; a thread is seldom interrupted twice in a row.
const TRIES: u32 = 8;

/// Now, in nanoseconds of CLOCK_MONOTONIC.
pub fn now() -> u64 {
    let mut at = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is to a timespec, which the call fills; it cannot fail for this clock.
    let at = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, at.as_mut_ptr());
        at.assume_init()
    };
    at.tv_sec as u64 * SECOND + at.tv_nsec as u64
}

/// When CLOCK_REALTIME showed `stamp` (nanoseconds), which is how the kernel stamps arrivals: never too early, and at most
/// about a microsecond too late.
///
/// Two clocks cannot be read at once, and a thread that loses its core between the two readings is wrong by as long. So
/// they are read again until they were read close together, and the later bound is taken.
pub fn of_realtime(stamp: u64) -> u64 {
    let mut closest = (u64::MAX, 0, 0);
    for _ in 0..TRIES {
        let before = now();
        let real = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
        let after = now();
        closest = closest.min((after - before, after, real));
        if after - before <= MICROSECOND {
            break;
        }
    }
    let (_, after, real) = closest;
    after.saturating_sub(real.saturating_sub(stamp))
}

/// Sleeps until `moment`; the kernel wakes a thread some tens of microseconds late.
pub fn sleep_until(moment: u64) {
    let at = libc::timespec { tv_sec: (moment / SECOND) as i64, tv_nsec: (moment % SECOND) as i64 };
    // SAFETY: a valid timespec, and no pointer for the time that would remain. EINTR only means to look again.
    while unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, std::ptr::null_mut()) }
        == libc::EINTR
    {}
}

/// Sleeps until `spin` nanoseconds before `moment`, and looks at the clock without pause from there on.
///
/// So a datagram leaves within about a microsecond of its time where the thread has a core, at the price of `spin`
/// nanoseconds of that core.
pub fn wait_until(moment: u64, spin: u64) {
    if now() + spin < moment {
        sleep_until(moment - spin);
    }
    while now() < moment {
        hint::spin_loop();
    }
}

/// Lets this thread's sleeps end without the 50 microseconds of slack that Linux allows itself otherwise.
pub fn sharpen() {
    // SAFETY: sets a number of the calling thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_of_the_other_clock_is_never_too_early() {
        for _ in 0..10_000 {
            let before = now();
            let stamp = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
            assert!(of_realtime(stamp) >= before);
        }
    }
}
