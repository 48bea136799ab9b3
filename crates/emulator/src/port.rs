//! A port of the emulator: how packets come in, and how they go out.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, RawFd};

use crate::batch::{BATCH, Batch};
use crate::netlink::{Counters, Netlink};
use crate::packet::Packet;
use crate::pool::Pool;
use crate::tap::Tap;
use crate::virtio_net::{HEADER, HEADS, Vnet};
use crate::xsk::Xsk;

/// A packet on its way out: headers of its own (or none) and a part of a held frame.
pub struct Outgoing {
    pub vnet: [u8; HEADER],
    pub head: [u8; HEADS],
    pub head_len: usize,
    pub slot: u32,
    pub body: std::ops::Range<usize>,
    /// Departures of the slot that this is.
    pub users: u32,
}

impl Outgoing {
    /// The whole held frame.
    pub fn whole(vnet: Vnet, slot: u32, len: usize) -> Self {
        Self { vnet: vnet.bytes(), head: [0; HEADS], head_len: 0, slot, body: 0..len, users: 1 }
    }

    /// The three places from which it is written.
    pub fn places<'a>(&'a self, pool: &'a Pool) -> [&'a [u8]; 3] {
        [&self.vnet, &self.head[..self.head_len], &pool.get(self.slot).frame()[self.body.clone()]]
    }
}

/// How packets cross.
pub enum Device {
    Packet(Packet),
    Tap(Tap),
    Xdp(Box<Xsk>),
}

/// A port of the link.
pub struct Port {
    pub name: String,
    /// How packets cross, in words.
    pub datapath: String,
    pub device: Device,
    /// Asked for counters, in the namespace of the interface.
    netlink: Netlink,
    interface: String,
    start: Counters,
    /// The interface's counters when they could last be read: as a lab ends, its interfaces may go first.
    known: Counters,
    /// Packets that the kernel would not take, or not hand over.
    pub refused: u64,
}

/// What went wrong at a port so far, all of it unplanned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Faults {
    /// Dropped by the interface on transmission: towards the link for a TAP, towards the node for a veth.
    pub tx_dropped: u64,
    /// Dropped by the interface on reception.
    pub rx_dropped: u64,
    /// Dropped because the packet socket's buffer was full, or the AF_XDP socket's ring.
    pub socket_dropped: u64,
    /// Refused by the kernel when they were sent, or received.
    pub refused: u64,
}

impl Port {
    pub fn new(
        name: String,
        datapath: String,
        device: Device,
        mut netlink: Netlink,
        interface: String,
    ) -> Result<Self> {
        let start = netlink.counters(&interface)?;
        Ok(Self { name, datapath, device, netlink, interface, start, known: start, refused: 0 })
    }

    pub fn fd(&self) -> RawFd {
        match &self.device {
            Device::Packet(packet) => packet.fd.as_raw_fd(),
            Device::Tap(tap) => tap.fd.as_raw_fd(),
            Device::Xdp(xsk) => xsk.fd.as_raw_fd(),
        }
    }

    /// Packets that wait to be received; 0 if there are none.
    pub fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        let got = match &mut self.device {
            Device::Packet(packet) => packet.receive(batch),
            Device::Tap(tap) => tap.receive(batch),
            Device::Xdp(xsk) => xsk.receive(batch),
        };
        match got {
            // The interface is down, or a signal came: there is nothing for now.
            Err(error) if nothing(&error) => Ok(0),
            // One packet is gone, and the next may be of another kind.
            Err(error) if unspeakable(&error) => {
                self.refused += 1;
                Ok(0)
            }
            // EBADFD: the device is gone, with its namespace.
            Err(error) => Err(Error::new(error.kind(), format!("port {}: {error}", self.name))),
            got => got,
        }
    }

    /// Sends received packets on as they are.
    pub fn forward(&mut self, batch: &Batch, numbers: &[usize]) {
        for chunk in numbers.chunks(BATCH) {
            let mut places = [[&[][..]; 3]; BATCH];
            for (place, &number) in places.iter_mut().zip(chunk) {
                place[0] = batch.raw(number);
            }
            self.send(&places[..chunk.len()]);
        }
    }

    /// Sends packets.
    pub fn send(&mut self, packets: &[[&[u8]; 3]]) {
        self.refused += match &mut self.device {
            Device::Packet(packet) => packet.send(packets),
            Device::Tap(tap) => tap.send(packets),
            Device::Xdp(xsk) => xsk.send(packets),
        };
    }

    /// What went wrong so far.
    pub fn faults(&mut self) -> Faults {
        let (mut socket_dropped, mut counted_twice, mut invalid) = (0, 0, 0);
        match &mut self.device {
            Device::Packet(packet) => socket_dropped = packet.dropped(),
            Device::Tap(_) => {}
            Device::Xdp(xsk) => {
                (socket_dropped, invalid) = xsk.lost();
                // What the socket cannot take is a failed redirection to the driver, which counts it too.
                counted_twice = socket_dropped;
            }
        }
        self.known = self.netlink.counters(&self.interface).unwrap_or(self.known);
        Faults {
            tx_dropped: self.known.tx_dropped.saturating_sub(self.start.tx_dropped),
            rx_dropped: self.known.rx_dropped.saturating_sub(self.start.rx_dropped).saturating_sub(counted_twice),
            socket_dropped,
            refused: self.refused + invalid,
        }
    }
}

/// The header in front of a packet has no word for its kind of super-packet: one of UDP before Linux 6.2
/// (`virtio_net_hdr_from_skb`). The kernel has dropped it.
fn unspeakable(error: &Error) -> bool {
    error.raw_os_error() == Some(libc::EINVAL)
}

fn nothing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NetworkDown)
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;
    use crate::sys::owned;

    /// A port whose reader is a socket that has been asked for no connection; the kernel says so in its own way.
    fn port(family: i32) -> Port {
        // SAFETY: takes numbers only and returns a new descriptor.
        let fd: OwnedFd = unsafe { owned(libc::socket(family, libc::SOCK_STREAM, 0)).unwrap() };
        let device = Device::Packet(Packet::over(fd));
        Port::new("a.0".into(), "af_packet".into(), device, Netlink::open().unwrap(), "lo".into()).unwrap()
    }

    #[test]
    fn a_packet_that_the_kernel_cannot_hand_over_is_counted_and_no_end() {
        let mut port = port(libc::AF_UNIX); // EINVAL, as of an unspeakable packet
        for times in 1..=3 {
            assert_eq!(port.receive(&mut Batch::new()).unwrap(), 0);
            assert_eq!(port.refused, times);
        }
        assert_eq!(port.faults().refused, 3);
    }

    #[test]
    fn what_an_interface_dropped_is_still_known_when_it_is_gone() {
        let mut port = port(libc::AF_UNIX);
        port.known.tx_dropped = port.start.tx_dropped + 7;
        port.interface = "gone".into();
        assert_eq!(port.faults().tx_dropped, 7);
    }

    #[test]
    fn other_errors_name_the_port() {
        let error = port(libc::AF_INET).receive(&mut Batch::new()).unwrap_err(); // ENOTCONN
        assert!(error.to_string().starts_with("port a.0: "), "{error}");
    }
}
