//! Makes a port that does not exist yet: a TAP device whose interface is handed to a node, so that
//! super-packets cross whole.

use std::fs::OpenOptions;
use std::io::Result;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::batch::Batch;
use crate::netlink::{self, Netlink};
use crate::sys::{checked, inside};
use crate::virtio_net::HEADER;

/// `include/uapi/linux/if_tun.h`: checksums, TSO over IPv4 and IPv6 with ECN, USO over both.
const TUN_F_CSUM: u32 = 0x01;
const TUN_F_TSO: u32 = 0x02 | 0x04 | 0x08;
const TUN_F_USO: u32 = 0x20 | 0x40;

/// Packets read before others get their turn: each may be 64 KiB.
const READS: usize = 8;

/// The reader's end of a TAP device.
pub struct Tap {
    pub fd: OwnedFd,
}

impl Tap {
    /// Makes a device and moves its interface; returns a netlink socket in that namespace too.
    ///
    /// With NAPI the receiver's protocols run in a softirq behind whatever else is pending on this core, which
    /// holds the next packet up; without, they run in the call that writes.
    pub fn open(to: BorrowedFd<'_>, interface: &str, mac: Option<[u8; 6]>, napi: bool) -> Result<(Self, Netlink)> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        let fd = OwnedFd::from(file);
        // SAFETY: an all-zero ifreq is valid; the name is empty, so the kernel chooses one.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | if napi { libc::IFF_NAPI } else { 0 };
        request.ifr_ifru.ifru_flags = flags as i16;
        for (byte, letter) in request.ifr_name.iter_mut().zip(b"tmark%d") {
            *byte = *letter as _;
        }
        // SAFETY: TUNSETIFF reads and writes the request.
        checked(i64::from(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &mut request) }))?;
        // SAFETY: TUNSETVNETHDRSZ reads an integer.
        checked(i64::from(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETVNETHDRSZ, &(HEADER as i32)) }))?;
        let all = TUN_F_CSUM | TUN_F_TSO | TUN_F_USO;
        if Self::offload(&fd, all).is_err() {
            // Before Linux 6.2 there is no USO; long UDP then arrives parted.
            Self::offload(&fd, TUN_F_CSUM | TUN_F_TSO)?;
        }
        // SAFETY: the kernel has ended the name with 0 within the field.
        let name = unsafe { std::ffi::CStr::from_ptr(request.ifr_name.as_ptr()) }.to_string_lossy().into_owned();
        Netlink::open()?.hand_over(netlink::index(&name)?, to, interface, mac)?;
        let netlink = inside(to, || {
            let mut netlink = Netlink::open()?;
            netlink.up(netlink::index(interface)?)?;
            Ok(netlink)
        })?;
        Ok((Self { fd }, netlink))
    }

    fn offload(fd: &OwnedFd, flags: u32) -> Result<()> {
        // SAFETY: TUNSETOFFLOAD takes a number.
        checked(i64::from(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(flags)) }))
            .map(drop)
    }

    pub fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        for number in 0..READS {
            let buffer = &mut batch.buffers[number];
            // SAFETY: the buffer is valid for its length.
            let got = unsafe { libc::read(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
            match checked(got as i64) {
                Ok(got) => batch.lens[number] = got as usize,
                Err(_) if number > 0 => return Ok(number),
                Err(error) => return Err(error),
            }
        }
        Ok(READS)
    }

    /// Sends packets; returns how many the kernel refused.
    pub fn send(&mut self, packets: &[[&[u8]; 3]]) -> u64 {
        let mut refused = 0;
        for places in packets {
            let vectors =
                places.map(|place| libc::iovec { iov_base: place.as_ptr().cast_mut().cast(), iov_len: place.len() });
            // SAFETY: the vectors live to the end of the call; what they point to is borrowed and only read.
            let sent = unsafe { libc::writev(self.fd.as_raw_fd(), vectors.as_ptr(), 3) };
            refused += u64::from(sent < 0);
        }
        refused
    }
}
