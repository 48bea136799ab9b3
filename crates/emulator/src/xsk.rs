//! Opens a port that exists already, through AF_XDP: an interface in this namespace. A program in the interface's
//! driver hands its packets to us, as whole frames in memory shared with the kernel.
//!
//! In copy mode, which every driver can do: the kernel copies each frame between its own memory and ours.

use std::io::{Error, Result};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::batch::{BATCH, Batch};
use crate::bpf::Redirect;
use crate::netlink;
use crate::ring::{Mapping, Ring};
use crate::sys::{checked, owned};
use crate::virtio_net::{HEADER, Vnet};

/// A frame has a chunk of its own. The kernel leaves 256 bytes in front of what it receives (XDP_PACKET_HEADROOM), and
/// lets no veth have XDP whose peer's MTU would not fit a page.
const CHUNK: usize = 4096;
/// Frames that may wait for us: 10 ms at 0.4 million a second.
const RECEIVE: u32 = 4096;
/// Frames on their way out: more than one batch, because a receiver may hold them for a moment.
const SEND: u32 = 512;
/// Entries for each chunk in the rings that the kernel empties: it hands a chunk back before it moves the consumer on.
const SPARE: u32 = 2;
/// Where a frame to be sent begins in its chunk: its header is before it.
const LEAD: usize = 16;
/// Room for frames that are sent, of the socket: as for packet sockets.
const SEND_BUFFER: i32 = 64 << 20;
/// Attempts to send without success, before packets wait for the next occasion.
const ATTEMPTS: u32 = 8;

/// A socket bound to the one queue of an interface.
pub struct Xsk {
    pub fd: OwnedFd,
    _redirect: Redirect,
    memory: Mapping,
    fill: Ring<u64>,
    receive: Ring<libc::xdp_desc>,
    send: Ring<libc::xdp_desc>,
    completed: Ring<u64>,
    free: Vec<u64>,
}

impl Xsk {
    pub fn open(interface: &str) -> Result<Self> {
        let index = netlink::index(interface)?;
        let queues = netlink::queues(interface)?;
        if queues != 1 {
            return Err(Error::other(format!("{interface} has {queues} receive queues, and XDP here serves one")));
        }
        // SAFETY: takes numbers only and returns a new descriptor.
        let fd = unsafe { owned(libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0))? };
        if set(&fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER).is_err() {
            // Without the capability in the first user namespace: as much as is allowed.
            set(&fd, libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER)?;
        }
        let memory = Mapping::new(None, 0, CHUNK * (RECEIVE + SEND) as usize)?;
        // SAFETY: an all-zero xdp_umem_reg is valid.
        let mut region: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
        region.addr = memory.base().as_ptr() as u64;
        region.len = memory.len() as u64;
        region.chunk_size = CHUNK as u32;
        set(&fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &region)?;
        for (option, size) in [
            (libc::XDP_UMEM_FILL_RING, RECEIVE * SPARE),
            (libc::XDP_RX_RING, RECEIVE),
            (libc::XDP_TX_RING, SEND * SPARE),
            (libc::XDP_UMEM_COMPLETION_RING, SEND),
        ] {
            set(&fd, libc::SOL_XDP, option, &size)?;
        }
        // SAFETY: an all-zero xdp_mmap_offsets is valid, and for the kernel to fill.
        let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        get(&fd, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
        let mut fill = ring(&fd, &offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING as i64, RECEIVE * SPARE)?;
        for number in 0..u64::from(RECEIVE) {
            fill.put(number * CHUNK as u64);
        }
        fill.publish();
        let receive = ring(&fd, &offsets.rx, libc::XDP_PGOFF_RX_RING, RECEIVE)?;
        let send = ring(&fd, &offsets.tx, libc::XDP_PGOFF_TX_RING, SEND * SPARE)?;
        let completed = ring(&fd, &offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, SEND)?;
        // SAFETY: an all-zero sockaddr_xdp is valid.
        let mut address: libc::sockaddr_xdp = unsafe { std::mem::zeroed() };
        address.sxdp_family = libc::AF_XDP as u16;
        address.sxdp_flags = libc::XDP_COPY;
        address.sxdp_ifindex = index;
        let size = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is valid for its size.
        checked(i64::from(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) }))?;
        // Last, when the socket is there to take the packets.
        let redirect = Redirect::attach(index, fd.as_fd())?;
        let free = (u64::from(RECEIVE)..u64::from(RECEIVE + SEND)).map(|number| number * CHUNK as u64).collect();
        Ok(Self { fd, _redirect: redirect, memory, fill, receive, send, completed, free })
    }

    /// Frames that wait; no call into the kernel.
    pub fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        let mut got = 0;
        while got < BATCH {
            let Some(found) = self.receive.take() else { break };
            let frame = bytes(&mut self.memory, found.addr as usize, found.len as usize);
            let buffer = &mut batch.buffers[got];
            buffer[..HEADER].copy_from_slice(&Vnet::unfinished(frame).bytes());
            buffer[HEADER..HEADER + frame.len()].copy_from_slice(frame);
            batch.lens[got] = HEADER + frame.len();
            self.fill.put(found.addr & !(CHUNK as u64 - 1));
            got += 1;
        }
        if got > 0 {
            self.receive.release();
            self.fill.publish();
        }
        if self.send.pending() > 0 {
            self.push();
        }
        Ok(got)
    }

    /// Sends frames; returns how many could not be.
    pub fn send(&mut self, packets: &[[&[u8]; 3]]) -> u64 {
        let mut refused = 0;
        self.reap();
        for places in packets {
            let len = places.iter().map(|place| place.len()).sum::<usize>() - HEADER;
            // A super-packet needs a header to cross, which XDP has not; none comes in at such a port.
            let free = if len > CHUNK - LEAD { None } else { self.free.pop() };
            let Some(chunk) = free else {
                refused += 1;
                continue;
            };
            let begin = chunk as usize + LEAD;
            let mut rest = bytes(&mut self.memory, begin - HEADER, HEADER + len);
            for place in places {
                let (now, later) = rest.split_at_mut(place.len());
                now.copy_from_slice(place);
                rest = later;
            }
            let (header, frame) = bytes(&mut self.memory, begin - HEADER, HEADER + len).split_at_mut(HEADER);
            Vnet::parse(header).complete_checksum(frame);
            self.send.put(libc::xdp_desc { addr: begin as u64, len: len as u32, options: 0 });
        }
        self.send.publish();
        self.push();
        refused
    }

    /// Has the kernel send what is in the ring: up to 32 frames a call.
    fn push(&mut self) {
        let mut attempts = 0;
        loop {
            let before = self.send.pending();
            if before == 0 {
                return;
            }
            let (fd, none) = (self.fd.as_raw_fd(), std::ptr::null());
            // SAFETY: no data and no address.
            let result = unsafe { libc::sendto(fd, none, 0, libc::MSG_DONTWAIT, none.cast(), 0) };
            // EBUSY: the interface has dropped a frame and counted it; the next call goes on behind it.
            let dropped = result < 0 && Error::last_os_error().raw_os_error() == Some(libc::EBUSY);
            if self.send.pending() == before && !dropped {
                attempts += 1;
                if attempts == ATTEMPTS {
                    return;
                }
            }
        }
    }

    /// Takes back the chunks of frames that are sent.
    fn reap(&mut self) {
        while let Some(address) = self.completed.take() {
            self.free.push(address & !(CHUNK as u64 - 1));
        }
        self.completed.release();
    }

    /// Frames lost so far: those for which there was no room, or no chunk; and those that were not valid to send.
    pub fn lost(&self) -> (u64, u64) {
        // SAFETY: an all-zero xdp_statistics is valid, and for the kernel to fill.
        let mut stats: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        // It fails on no socket that is open. An empty fill ring is among rx_dropped.
        let _ = get(&self.fd, libc::XDP_STATISTICS, &mut stats);
        (stats.rx_dropped + stats.rx_ring_full, stats.tx_invalid_descs)
    }
}

/// Bytes of the memory shared with the kernel, which holds no chunk that is in none of its rings.
fn bytes(memory: &mut Mapping, begin: usize, len: usize) -> &mut [u8] {
    assert!(begin + len <= memory.len());
    // SAFETY: inside the mapping, as just seen, and borrowed with it; the kernel has handed the chunk to us.
    unsafe { std::slice::from_raw_parts_mut(memory.base().as_ptr().add(begin), len) }
}

fn ring<T: Copy>(fd: &OwnedFd, offsets: &libc::xdp_ring_offset, place: i64, size: u32) -> Result<Ring<T>> {
    let len = offsets.desc as usize + size as usize * size_of::<T>();
    Ok(Ring::new(Mapping::new(Some(fd.as_fd()), place, len)?, offsets, size))
}

fn set<T>(fd: &OwnedFd, level: i32, option: i32, value: &T) -> Result<()> {
    let size = size_of_val(value) as libc::socklen_t;
    // SAFETY: the value is valid for its size.
    checked(i64::from(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const *value).cast(), size) }))
        .map(drop)
}

fn get<T>(fd: &OwnedFd, option: i32, value: &mut T) -> Result<()> {
    let mut size = size_of_val(value) as libc::socklen_t;
    let place = (&raw mut *value).cast();
    // SAFETY: the value is valid for the size, which the kernel does not exceed.
    checked(i64::from(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, option, place, &mut size) })).map(drop)
}
