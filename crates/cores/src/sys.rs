//! Wraps the calls into the kernel: time, sleep, scheduling, shared memory, network namespaces.

use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::AsRawFd;

fn checked(result: i32) -> Result<()> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as libc::time_t, tv_nsec: (ns % 1_000_000_000) as libc::c_long }
}

fn clock(which: libc::clockid_t) -> u64 {
    let mut time = timespec(0);
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
pub fn used_by_thread() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds of CPU time that this process has used.
pub fn used() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Sleeps until a moment of the monotonic clock; signals end it early.
pub fn sleep_until(ns: u64) {
    let time = timespec(ns);
    // SAFETY: the time lives to the end of the call, and nothing is written.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut()) };
}

/// The cores that this thread may run on.
pub fn cores() -> Result<Vec<usize>> {
    // SAFETY: an all-zero cpu_set_t is valid and empty, and for the kernel to fill.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is valid for its size; 0 is the calling thread.
    checked(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) })?;
    // SAFETY: CPU_ISSET reads the set within its size.
    Ok((0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect())
}

/// Binds this thread to a core.
pub fn stay_on(core: usize) -> Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(Error::other(format!("there is no core {core}")));
    }
    // SAFETY: an all-zero cpu_set_t is valid and empty.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the core is within the set, as just seen.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the set is valid for its size; 0 is the calling thread.
    checked(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) })
}

fn schedule(policy: i32, priority: i32) -> Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to parameters of ours; 0 is the calling thread.
    checked(unsafe { libc::sched_setscheduler(0, policy, &parameters) })
}

/// Has everything else go before this thread: idle class, and the least of its weights.
pub fn yield_to_all() -> Result<()> {
    // SAFETY: takes numbers only; 0 is the calling thread.
    checked(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) })?;
    schedule(libc::SCHED_IDLE, 0)
}

/// Has this thread go before everything else.
pub fn go_first() -> Result<()> {
    // SAFETY: takes a number only.
    schedule(libc::SCHED_FIFO, unsafe { libc::sched_get_priority_max(libc::SCHED_FIFO) })
}

/// Has the kernel end this process with the thread that made it.
pub fn die_with_parent() -> Result<()> {
    // SAFETY: takes numbers only.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })
}

/// Maps `len` bytes of an open file, shared and to be written.
pub fn shared(fd: i32, len: usize) -> Result<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses a place that is free; a wrong descriptor is an error.
    let place = unsafe { libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, fd, 0) };
    if place == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(place.cast()) }
}

/// The size of an open file in bytes.
pub fn size(fd: i32) -> Result<usize> {
    // SAFETY: an all-zero stat is valid, and for the kernel to fill.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a stat of ours; a wrong descriptor is an error.
    checked(unsafe { libc::fstat(fd, &mut found) })?;
    Ok(found.st_size as usize)
}

/// Has timers of this thread end when they are due; by default the kernel may add 50 us (prctl(2)).
pub fn exact_timers() -> Result<()> {
    // SAFETY: takes numbers only.
    checked(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) })
}

/// Asks the kernel for the parent's number, which no library remembers: as little as a system call can do.
pub fn parent() -> Result<()> {
    // SAFETY: takes nothing.
    checked(unsafe { libc::syscall(libc::SYS_getppid) } as i32)
}

/// Has this thread, and what it starts, use a new network namespace; the others keep theirs.
pub fn leave_network() -> Result<()> {
    // SAFETY: takes a number only.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}

/// Has this thread use the network namespace that this file refers to.
pub fn enter_network(namespace: &File) -> Result<()> {
    // SAFETY: takes numbers only; the file is open.
    checked(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })
}

/// A TUN device of this thread's network namespace, which hands over bare packets.
pub fn tun(name: &str) -> Result<File> {
    let device = File::options().read(true).write(true).open("/dev/net/tun")?;
    // SAFETY: an all-zero ifreq is valid, and names nothing.
    let mut asked: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in asked.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *place = byte as libc::c_char;
    }
    asked.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the pointer is to an ifreq of ours, which ends with a zero as it is shorter than its place.
    checked(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &mut asked) })?;
    Ok(device)
}
