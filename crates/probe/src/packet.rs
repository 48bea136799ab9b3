//! The header of every datagram: its stream, its number in the stream, when it was to leave, and when it left.

/// The first four bytes, which distinguish our datagrams from stray ones.
const MAGIC: [u8; 4] = *b"TMpk";

/// The bytes that a header takes; no datagram is shorter.
pub const LEN: usize = 32;

/// The header of a datagram; times are those of `clock::now`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which stream or trial it belongs to.
    pub stream: u32,
    /// Its number in the stream, from 0.
    pub sequence: u64,
    /// When the schedule had it leave.
    pub intended: u64,
    /// When it was handed to the kernel.
    pub sent: u64,
}

impl Header {
    /// Writes itself to the first `LEN` bytes of a datagram.
    pub fn write(&self, datagram: &mut [u8]) {
        datagram[..4].copy_from_slice(&MAGIC);
        datagram[4..8].copy_from_slice(&self.stream.to_be_bytes());
        datagram[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        datagram[16..24].copy_from_slice(&self.intended.to_be_bytes());
        datagram[24..32].copy_from_slice(&self.sent.to_be_bytes());
    }

    /// The header of a datagram; none if it is not one of ours.
    pub fn read(datagram: &[u8]) -> Option<Header> {
        if datagram.len() < LEN || datagram[..4] != MAGIC {
            return None;
        }
        let number = |at: usize| u64::from_be_bytes(datagram[at..at + 8].try_into().expect("eight bytes"));
        Some(Header {
            stream: u32::from_be_bytes(datagram[4..8].try_into().expect("four bytes")),
            sequence: number(8),
            intended: number(16),
            sent: number(24),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header { stream: 7, sequence: u64::MAX, intended: 3, sent: 1 << 60 };

    #[test]
    fn reads_what_it_wrote() {
        let mut datagram = [0xff; 64];
        HEADER.write(&mut datagram);
        assert_eq!(Header::read(&datagram), Some(HEADER));
    }

    #[test]
    fn is_not_read_from_what_is_too_short_or_not_ours() {
        let mut datagram = [0; 64];
        assert_eq!(Header::read(&datagram), None);
        HEADER.write(&mut datagram);
        assert_eq!(Header::read(&datagram[..LEN - 1]), None);
    }
}
