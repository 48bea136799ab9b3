//! Reads and changes Internet headers: where they are, their lengths and checksums (RFC 1071).

/// Where the network header lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4 at this offset.
    V4(u8),
    /// IPv6 at this offset.
    V6(u8),
}

impl Network {
    /// The network header of an Ethernet frame, behind up to two VLAN tags.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let mut at = 12;
        for _ in 0..3 {
            let kind = frame.get(at..at + 2)?;
            at += 2;
            match kind {
                [0x08, 0x00] if frame.len() >= at + 20 => return Some(Self::V4(at as u8)),
                [0x86, 0xdd] if frame.len() >= at + 40 => return Some(Self::V6(at as u8)),
                [0x81, 0x00] | [0x88, 0xa8] => at += 2,
                _ => return None,
            }
        }
        None
    }

    /// Its offset.
    pub fn at(self) -> usize {
        match self {
            Self::V4(at) | Self::V6(at) => usize::from(at),
        }
    }

    /// Where its header ends at the earliest.
    pub fn end(self) -> usize {
        match self {
            Self::V4(at) => usize::from(at) + 20,
            Self::V6(at) => usize::from(at) + 40,
        }
    }

    /// Protocol and place of the transport packet that follows directly and ends with the frame; none of a fragment,
    /// whose checksum is about more than is here.
    pub fn transport(self, frame: &[u8]) -> Option<(u8, usize)> {
        let at = self.at();
        let word = |offset: usize| usize::from(u16::from_be_bytes([frame[at + offset], frame[at + offset + 1]]));
        let (protocol, start, end) = match self {
            Self::V4(_) => {
                const MORE_OR_OFFSET: usize = 0x3fff;
                let header = usize::from(frame[at] & 15) * 4;
                if word(6) & MORE_OR_OFFSET != 0 {
                    return None;
                }
                (frame[at + 9], at + header, at + word(2))
            }
            Self::V6(_) => (frame[at + 6], at + 40, at + 40 + word(4)),
        };
        (end == frame.len() && start <= end).then_some((protocol, start))
    }

    /// Whether this header's own transport packet is of `protocol` and begins at `transport`: not so where it carries a
    /// tunnel, whose super-packet is one of the headers inside. IPv6 may have options and routing headers in between.
    pub fn carries(self, frame: &[u8], protocol: u8, transport: usize) -> bool {
        const OPTIONS: [u8; 3] = [0, 43, 60]; // hop-by-hop, routing, destination (RFC 8200, 4.1)
        let at = self.at();
        match self {
            Self::V4(_) => (frame[at + 9], at + usize::from(frame[at] & 15) * 4) == (protocol, transport),
            Self::V6(_) => (frame[at + 6], at + 40) == (protocol, transport) || OPTIONS.contains(&frame[at + 6]),
        }
    }

    /// Sets the length of the network packet, and moves an IPv4 identification on by `number`.
    pub fn resize(self, heads: &mut [u8], length: usize, number: u16) {
        let at = self.at();
        match self {
            Self::V4(_) => {
                heads[at + 2..at + 4].copy_from_slice(&(length as u16).to_be_bytes());
                let id = u16::from_be_bytes([heads[at + 4], heads[at + 5]]).wrapping_add(number);
                heads[at + 4..at + 6].copy_from_slice(&id.to_be_bytes());
                heads[at + 10..at + 12].fill(0);
                let end = at + usize::from(heads[at] & 15) * 4;
                let check = !fold(sum(&heads[at..end.min(heads.len())]));
                heads[at + 10..at + 12].copy_from_slice(&check.to_be_bytes());
            }
            Self::V6(_) => heads[at + 4..at + 6].copy_from_slice(&((length - 40) as u16).to_be_bytes()),
        }
    }

    /// Sum of the pseudo-header of a transport packet.
    pub fn pseudo(self, heads: &[u8], protocol: u8, length: u32) -> u64 {
        let at = self.at();
        let addresses = match self {
            Self::V4(_) => &heads[at + 12..at + 20],
            Self::V6(_) => &heads[at + 8..at + 40],
        };
        sum(addresses) + u64::from(protocol) + u64::from(length)
    }
}

/// One's complement sum of big-endian words, not folded.
pub fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let mut total: u64 = words.by_ref().map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    if let [last] = words.remainder() {
        total += u64::from(*last) << 8;
    }
    total
}

/// The sum folded into 16 bits.
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
