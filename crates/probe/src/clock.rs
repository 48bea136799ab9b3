//! The one clock: nanoseconds of CLOCK_MONOTONIC, and waiting until a moment of it.

use std::hint;
use std::mem::MaybeUninit;

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// Nanoseconds in a millisecond.
pub const MILLISECOND: u64 = 1_000_000;

/// Nanoseconds in a microsecond.
pub const MICROSECOND: u64 = 1_000;

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
