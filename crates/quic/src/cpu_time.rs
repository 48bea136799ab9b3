//! The CPU time of this process.

use std::mem::MaybeUninit;

/// CPU seconds that this process has used, in its own code and in the kernel's on its behalf (getrusage).
pub fn cpu_seconds() -> f64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole rusage, which the call fills.
    let done = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    assert_eq!(done, 0, "getrusage of oneself cannot fail");
    // SAFETY: zeros are a valid rusage, and the call has filled it.
    let usage = unsafe { usage.assume_init() };
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}
