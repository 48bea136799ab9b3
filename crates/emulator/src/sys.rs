//! Wraps the calls into the kernel that are not about ports: time, waiting, scheduling, namespaces, signals.

use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// The result of a system call that says -1 for failure.
pub fn checked(result: i64) -> Result<i64> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

/// A descriptor that a system call returned.
///
/// # Safety
/// A non-negative `result` must be a descriptor that no one else owns.
pub unsafe fn owned(result: i32) -> Result<OwnedFd> {
    checked(i64::from(result))?;
    // SAFETY: the caller promises that it is ours.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

fn clock(which: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours; the clocks used here always exist.
    unsafe { libc::clock_gettime(which, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of the monotonic clock.
#[inline]
pub fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of CPU time that this thread has used.
pub fn thread_cpu() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The core on which this thread slept last.
static SLEPT: AtomicU32 = AtomicU32::new(0);

/// The core on which the thread that waits slept last, and the one on which the calling thread runs.
pub fn cores() -> (u32, u32) {
    (SLEPT.load(Ordering::Relaxed), core())
}

fn core() -> u32 {
    // SAFETY: takes nothing; -1, where the kernel cannot say it, is not a core.
    unsafe { libc::sched_getcpu() as u32 }
}

/// Waits until one of the descriptors has something, or for `timeout` nanoseconds; none: without end.
pub fn wait(fds: &mut [libc::pollfd], timeout: Option<u64>) -> Result<()> {
    let time = timeout.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    SLEPT.store(core(), Ordering::Relaxed);
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the descriptors' slice is valid for its length, the time lives to the end of the call.
    let result = unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, time, std::ptr::null()) };
    match checked(i64::from(result)) {
        Err(error) if error.kind() != std::io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// An entry for [`wait`].
pub fn readable(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

/// Timers of this thread fire when they are due: the default slack is 50 us.
pub fn exact_timers() {
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1u64) };
}

/// Real-time priority for this thread.
pub fn fifo(priority: i32) -> Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to parameters of ours; 0 is the calling thread.
    checked(i64::from(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) })).map(drop)
}

/// Does something inside another network namespace.
pub fn inside<T>(namespace: BorrowedFd<'_>, what: impl FnOnce() -> Result<T>) -> Result<T> {
    let back = File::open("/proc/thread-self/ns/net")?;
    enter(namespace.as_raw_fd())?;
    let result = what();
    enter(back.as_raw_fd())?;
    result
}

fn enter(namespace: RawFd) -> Result<()> {
    // SAFETY: takes numbers only; a wrong descriptor is an error.
    checked(i64::from(unsafe { libc::setns(namespace, libc::CLONE_NEWNET) })).map(drop)
}

/// A descriptor that becomes readable on SIGTERM and SIGINT, which no longer end the process. To be called
/// before other threads start, so that they inherit the mask.
pub fn end_signals() -> Result<OwnedFd> {
    // SAFETY: an all-zero sigset_t is valid memory for sigemptyset to fill; the set outlives the calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGINT);
        checked(i64::from(libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut())))?;
        owned(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))
    }
}

/// A counter that wakes [`wait`].
pub fn bell() -> Result<OwnedFd> {
    // SAFETY: takes numbers only and returns a new descriptor.
    unsafe { owned(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)) }
}
