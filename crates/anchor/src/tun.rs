//! Makes the TUN device.

use std::fs::OpenOptions;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Makes a TUN device of that name, for IP packets without any header; reads and writes of it do not wait.
///
/// The program that starts the anchor sets the device's address and MTU.
pub fn open(name: &str) -> Result<OwnedFd> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    let fd = OwnedFd::from(file);
    // SAFETY: an all-zero ifreq is valid, and its name then ends with a zero, as `Config::parse` left room for one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
    for (place, letter) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *place = letter as _;
    }
    // SAFETY: TUNSETIFF reads and writes the request.
    if unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &mut request) } < 0 {
        return Err(Error::last_os_error());
    }
    Ok(fd)
}
