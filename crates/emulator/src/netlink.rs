//! Has the kernel move, name and raise interfaces, and reads their counters (rtnetlink).

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use crate::sys::{checked, owned};

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_TXQLEN: u16 = 13;
const IFLA_STATS64: u16 = 23;
const IFLA_NET_NS_FD: u16 = 28;

/// Counters of an interface, from its own point of view.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub rx_dropped: u64,
    pub tx_dropped: u64,
}

/// A netlink socket, which stays in the network namespace where it was opened.
pub struct Netlink {
    fd: OwnedFd,
    sequence: u32,
}

struct Message(Vec<u8>);

impl Message {
    /// `struct nlmsghdr` and `struct ifinfomsg`.
    fn new(kind: u16, index: u32, flags: u32) -> Self {
        let mut bytes = vec![0; 32];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        let request = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        bytes[6..8].copy_from_slice(&request.to_ne_bytes());
        bytes[20..24].copy_from_slice(&index.to_ne_bytes());
        bytes[24..28].copy_from_slice(&flags.to_ne_bytes());
        bytes[28..32].copy_from_slice(&flags.to_ne_bytes());
        Self(bytes)
    }

    fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

fn name(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

impl Netlink {
    pub fn open() -> Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: takes numbers only and returns a new descriptor.
        let fd = unsafe { owned(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE))? };
        Ok(Self { fd, sequence: 0 })
    }

    /// Moves an interface into a namespace under a name, with a longer queue towards its reader, and an
    /// Ethernet address if one is given.
    pub fn hand_over(&mut self, index: u32, to: BorrowedFd<'_>, as_name: &str, mac: Option<[u8; 6]>) -> Result<()> {
        let mut message = Message::new(libc::RTM_NEWLINK, index, 0)
            .with(IFLA_TXQLEN, &4096u32.to_ne_bytes())
            .with(IFLA_IFNAME, &name(as_name))
            .with(IFLA_NET_NS_FD, &to.as_raw_fd().to_ne_bytes());
        if let Some(mac) = mac {
            message = message.with(IFLA_ADDRESS, &mac);
        }
        self.ask(message).map(drop)
    }

    /// Raises an interface.
    pub fn up(&mut self, index: u32) -> Result<()> {
        self.ask(Message::new(libc::RTM_NEWLINK, index, libc::IFF_UP as u32)).map(drop)
    }

    /// Counters of an interface.
    pub fn counters(&mut self, interface: &str) -> Result<Counters> {
        let answer = self.ask(Message::new(libc::RTM_GETLINK, 0, 0).with(IFLA_IFNAME, &name(interface)))?;
        let mut rest = answer.get(32..).unwrap_or_default();
        while rest.len() >= 4 {
            let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
            let kind = u16::from_ne_bytes([rest[2], rest[3]]);
            let value = rest.get(4..length).unwrap_or_default();
            if kind == IFLA_STATS64 && value.len() >= 64 {
                let word = |at: usize| u64::from_ne_bytes(value[at * 8..at * 8 + 8].try_into().unwrap_or_default());
                // struct rtnl_link_stats64: packets, bytes, errors, dropped; each rx before tx.
                return Ok(Counters { rx_dropped: word(6), tx_dropped: word(7) });
            }
            rest = rest.get(length.next_multiple_of(4).max(4)..).unwrap_or_default();
        }
        Err(Error::other("the kernel sent no counters"))
    }

    /// Sends a message and returns the answer that came before its acknowledgement.
    fn ask(&mut self, mut message: Message) -> Result<Vec<u8>> {
        let length = message.0.len() as u32;
        self.sequence += 1;
        message.0[..4].copy_from_slice(&length.to_ne_bytes());
        message.0[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        // SAFETY: the buffer is valid for its length.
        checked(unsafe { libc::send(self.fd.as_raw_fd(), message.0.as_ptr().cast(), message.0.len(), 0) } as i64)?;
        let mut answer = vec![];
        let mut buffer = vec![0u8; 32 << 10];
        loop {
            // SAFETY: the buffer is valid for its length.
            let got = unsafe { libc::recv(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            let mut rest = &buffer[..checked(got as i64)? as usize];
            while rest.len() >= 20 {
                let length = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
                let kind = i32::from(u16::from_ne_bytes([rest[4], rest[5]]));
                let sequence = u32::from_ne_bytes([rest[8], rest[9], rest[10], rest[11]]);
                if length < 16 || length > rest.len() {
                    break;
                }
                if sequence == self.sequence && kind == libc::NLMSG_ERROR {
                    let code = i32::from_ne_bytes([rest[16], rest[17], rest[18], rest[19]]);
                    return if code == 0 { Ok(answer) } else { Err(Error::from_raw_os_error(-code)) };
                }
                if sequence == self.sequence {
                    answer = rest[..length].to_vec();
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

/// How many receive queues an interface in this namespace has; one, if its driver knows no queues.
pub fn queues(interface: &str) -> Result<u32> {
    // include/uapi/linux/ethtool.h: struct ethtool_channels, cmd and then maxima and counts of rx, tx, other, combined.
    const ETHTOOL_GCHANNELS: u32 = 0x3c;
    let mut channels = [ETHTOOL_GCHANNELS, 0, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: an all-zero ifreq is valid; takes numbers only and returns a new descriptor.
    let (mut request, fd): (libc::ifreq, OwnedFd) =
        unsafe { (std::mem::zeroed(), owned(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?) };
    for (byte, letter) in request.ifr_name.iter_mut().zip(interface.as_bytes().iter().take(libc::IFNAMSIZ - 1)) {
        *byte = *letter as _;
    }
    request.ifr_ifru.ifru_data = channels.as_mut_ptr().cast();
    // SAFETY: the request and what it points to live to the end of the call.
    match checked(i64::from(unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCETHTOOL, &mut request) })) {
        Ok(_) => Ok(channels[5] + channels[8]),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
        Err(error) => Err(error),
    }
}

/// The index of an interface in this namespace.
pub fn index(interface: &str) -> Result<u32> {
    let name = std::ffi::CString::new(interface).map_err(Error::other)?;
    // SAFETY: the name ends in 0.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 { Err(Error::last_os_error()) } else { Ok(index) }
}
