//! Handles the header in front of every packet that crosses a port (`struct virtio_net_hdr`), and the geometry
//! of super-packets: where their wire packets begin, and how some of them are taken out again.
//!
//! Layout and constants: the kernel's `include/uapi/linux/virtio_net.h`.

use crate::inet::{self, Network};

/// Length of the header.
pub const HEADER: usize = 10;
/// Room for the headers of one packet: Ethernet with two tags, IPv6 with options, TCP with options.
pub const HEADS: usize = 192;

const NEEDS_CSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// `struct virtio_net_hdr`, in the machine's byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vnet {
    pub flags: u8,
    pub gso_type: u8,
    pub hdr_len: u16,
    pub gso_size: u16,
    pub csum_start: u16,
    pub csum_offset: u16,
}

impl Vnet {
    pub fn parse(bytes: &[u8]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        }
    }

    pub fn bytes(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[0] = self.flags;
        out[1] = self.gso_type;
        for (at, word) in [(2, self.hdr_len), (4, self.gso_size), (6, self.csum_start), (8, self.csum_offset)] {
            out[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
        out
    }

    /// The header of a frame that came without one. Its sender may have left the checksum of TCP or UDP to hardware
    /// that is not there: the field then holds the sum of the pseudo-header and nothing else. A frame whose whole
    /// checksum happens to be that number (one in 65 536) is taken for such a one, and gets the same again.
    pub fn unfinished(frame: &[u8]) -> Self {
        let found = Network::of(frame).and_then(|network| {
            let (protocol, start) = network.transport(frame)?;
            let offset = match protocol {
                6 => 16,
                17 => 6,
                _ => return None,
            };
            let field = frame.get(start + offset..start + offset + 2)?;
            let pseudo = inet::fold(network.pseudo(frame, protocol, (frame.len() - start) as u32));
            (field == pseudo.to_be_bytes()).then_some((start as u16, offset as u16))
        });
        match found {
            Some((csum_start, csum_offset)) => Self { flags: NEEDS_CSUM, csum_start, csum_offset, ..Self::default() },
            None => Self::default(),
        }
    }

    /// Fills in a checksum that was left to the hardware, so that what is changed afterwards is not covered up.
    pub fn complete_checksum(&mut self, frame: &mut [u8]) {
        if self.flags & NEEDS_CSUM == 0 {
            return;
        }
        let start = usize::from(self.csum_start);
        let field = start + usize::from(self.csum_offset);
        if field + 2 <= frame.len() {
            let mut sum = inet::fold(inet::sum(&frame[start..]));
            // A UDP checksum of 0 means that there is none; 0xffff is the same number.
            if sum == 0xffff && self.csum_offset == 6 {
                sum = 0;
            }
            frame[field..field + 2].copy_from_slice(&(!sum).to_be_bytes());
        }
        self.flags &= !NEEDS_CSUM;
    }
}

/// The wire packets inside a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// How many.
    pub count: u32,
    /// Bytes of headers, which each of them repeats.
    pub heads: u32,
    /// Payload of each but the last.
    pub size: u32,
    /// Payload of all.
    pub payload: u32,
    network: Network,
    transport: u32,
    udp: bool,
}

impl Parts {
    /// The parts of a frame; none if it is one packet, or of a kind that cannot be parted here.
    pub fn of(vnet: &Vnet, frame: &[u8]) -> Option<Self> {
        let udp = match vnet.gso_type & !GSO_ECN {
            GSO_TCPV4 | GSO_TCPV6 => false,
            GSO_UDP_L4 => true,
            _ => return None,
        };
        if vnet.gso_size == 0 || vnet.flags & NEEDS_CSUM == 0 {
            return None;
        }
        let network = Network::of(frame)?;
        let transport = usize::from(vnet.csum_start);
        let header = if udp { 8 } else { usize::from(*frame.get(transport + 12)? >> 4) * 4 };
        let heads = transport + header;
        let whole = transport >= network.end()
            && network.carries(frame, if udp { 17 } else { 6 }, transport)
            && (udp || header >= 20);
        if !whole || heads > HEADS || heads >= frame.len() {
            return None;
        }
        let payload = (frame.len() - heads) as u32;
        let size = u32::from(vnet.gso_size);
        let (heads, transport) = (heads as u32, transport as u32);
        Some(Self { count: payload.div_ceil(size), heads, size, payload, network, transport, udp })
    }

    /// Length of wire packet `part`.
    #[inline]
    pub fn len(&self, part: u32) -> u32 {
        self.heads + self.size.min(self.payload - part * self.size)
    }

    /// Length of all wire packets together.
    pub fn wire_len(&self) -> u32 {
        self.count * self.heads + self.payload
    }

    /// Where in the frame the payload of parts `first` to `last` lies.
    pub fn body(&self, first: u32, last: u32) -> std::ops::Range<usize> {
        let begin = self.heads + first * self.size;
        let end = self.heads + ((last + 1) * self.size).min(self.payload);
        begin as usize..end as usize
    }

    /// Headers of a frame that holds parts `first` to `last`, written into `heads`; the way the kernel's
    /// `tcp_gso_segment` and `__udp_gso_segment` change them. Checksums stay with the receiver's hardware.
    pub fn head(&self, vnet: &Vnet, frame: &[u8], first: u32, last: u32, heads: &mut [u8; HEADS]) -> Vnet {
        let end = self.heads as usize;
        heads[..end].copy_from_slice(&frame[..end]);
        let heads = &mut heads[..end];
        let transport = self.transport as usize;
        let payload = self.body(first, last).len();
        self.network.resize(heads, end - self.network.at() + payload, first as u16);
        let field = if self.udp {
            let length = (8 + payload) as u16;
            heads[transport + 4..transport + 6].copy_from_slice(&length.to_be_bytes());
            transport + 6
        } else {
            let sequence = transport + 4..transport + 8;
            let old = u32::from_be_bytes(heads[sequence.clone()].try_into().unwrap_or_default());
            heads[sequence].copy_from_slice(&old.wrapping_add(first * self.size).to_be_bytes());
            const FIN_PSH: u8 = 0x09;
            const CWR: u8 = 0x80;
            if last + 1 < self.count {
                heads[transport + 13] &= !FIN_PSH;
            }
            if first > 0 {
                heads[transport + 13] &= !CWR;
            }
            transport + 16
        };
        let protocol = if self.udp { 17 } else { 6 };
        let pseudo = self.network.pseudo(heads, protocol, (end - transport + payload) as u32);
        heads[field..field + 2].copy_from_slice(&inet::fold(pseudo).to_be_bytes());
        let mut out = Vnet { hdr_len: self.heads as u16, ..*vnet };
        if first == last {
            (out.gso_type, out.gso_size, out.hdr_len) = (0, 0, 0);
        }
        out
    }
}

#[cfg(test)]
#[path = "virtio_net_tests.rs"]
mod tests;
