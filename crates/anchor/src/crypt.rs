//! Seals and opens packets: ChaCha20-Poly1305 (RFC 8439), with a counter as the nonce.
//!
//! A sealed packet begins with a header of three numbers, lowest byte first: `number` (4 bytes, the sender's), `epoch`
//! (4 bytes, drawn when the sender starts) and `counter` (8 bytes, from 0). The encrypted packet and the 16 bytes of
//! its tag follow. That is 32 bytes more than the packet, as many as WireGuard adds. Epoch and counter are the nonce. A
//! node that starts again with the same key repeats a nonce only with a chance of one in 2^32. The header is
//! authenticated.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes in front of a sealed packet.
pub const HEADER: usize = 16;

/// Bytes behind it.
pub const TAG: usize = 16;

/// The keys of one peer, one for each direction.
pub struct Keys {
    send: LessSafeKey,
    receive: LessSafeKey,
}

/// Four random bytes, another for each start.
pub fn epoch() -> Result<u32, String> {
    let mut bytes = [0; 4];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the kernel gives no random bytes".to_owned())?;
    Ok(u32::from_le_bytes(bytes))
}

/// The sender's number, from the header of a sealed packet; none if the packet is too short to be sealed.
pub fn sender(packet: &[u8]) -> Option<u32> {
    if packet.len() < HEADER + TAG {
        return None;
    }
    packet.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn nonce(header: &[u8]) -> Nonce {
    let mut bytes = [0; 12];
    bytes.copy_from_slice(&header[4..HEADER]);
    Nonce::assume_unique_for_key(bytes)
}

impl Keys {
    /// Keys made of 32 bytes each.
    pub fn new(send: &[u8; 32], receive: &[u8; 32]) -> Self {
        let key = |bytes: &[u8; 32]| {
            // It refuses only keys of another length.
            LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, bytes).expect("a key of 32 bytes"))
        };
        Self { send: key(send), receive: key(receive) }
    }

    /// Seals the packet of `len` bytes that is in `buffer` from `HEADER` on. Returns the length with header and tag.
    ///
    /// The buffer has room for `TAG` bytes behind the packet. A counter must not be used twice in an epoch.
    pub fn seal(&self, buffer: &mut [u8], len: usize, number: u32, epoch: u32, counter: u64) -> usize {
        let (header, rest) = buffer.split_at_mut(HEADER);
        header[..4].copy_from_slice(&number.to_le_bytes());
        header[4..8].copy_from_slice(&epoch.to_le_bytes());
        header[8..].copy_from_slice(&counter.to_le_bytes());
        let (packet, behind) = rest.split_at_mut(len);
        let tag = self.send.seal_in_place_separate_tag(nonce(header), Aad::from(&*header), packet);
        // It refuses only packets of more than 256 GiB.
        behind[..TAG].copy_from_slice(tag.expect("a packet that can be sealed").as_ref());
        HEADER + len + TAG
    }

    /// Opens a sealed packet in its place; none if it was not sealed with our key, or was changed.
    pub fn open<'a>(&self, packet: &'a mut [u8]) -> Option<&'a [u8]> {
        let (header, sealed) = packet.split_at_mut_checked(HEADER)?;
        let opened = self.receive.open_in_place(nonce(header), Aad::from(&*header), sealed).ok()?;
        Some(opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Keys, Keys) {
        (Keys::new(&[1; 32], &[2; 32]), Keys::new(&[2; 32], &[1; 32]))
    }

    fn sealed(keys: &Keys, packet: &[u8], counter: u64) -> Vec<u8> {
        let mut buffer = vec![0; HEADER + packet.len() + TAG];
        buffer[HEADER..HEADER + packet.len()].copy_from_slice(packet);
        let whole = keys.seal(&mut buffer, packet.len(), 7, 3, counter);
        assert_eq!(whole, buffer.len());
        buffer
    }

    #[test]
    fn what_one_seals_the_other_opens() {
        let (one, other) = pair();
        for size in [0, 1, 64, 1420] {
            let packet: Vec<u8> = (0..size).map(|number| number as u8).collect();
            let mut found = sealed(&one, &packet, size as u64);
            assert_eq!(sender(&found), Some(7));
            assert!(size < 64 || !found.windows(32).any(|window| window == &packet[..32]), "plaintext");
            assert_eq!(other.open(&mut found), Some(&packet[..]));
        }
    }

    #[test]
    fn a_direction_has_a_key_of_its_own() {
        let (one, _) = pair();
        assert_eq!(one.open(&mut sealed(&one, b"packet", 0)), None);
    }

    #[test]
    fn any_changed_bit_is_refused() {
        let (one, other) = pair();
        let whole = sealed(&one, b"packet", 5);
        for place in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[place / 8] ^= 1 << (place % 8);
            assert_eq!(other.open(&mut changed), None, "bit {place}");
        }
    }

    #[test]
    fn what_is_too_short_is_nobodys() {
        let (_, other) = pair();
        for size in 0..HEADER + TAG {
            assert_eq!(sender(&vec![0; size]), None);
            assert_eq!(other.open(&mut vec![0; size]), None);
        }
    }

    #[test]
    fn another_counter_or_epoch_is_another_packet() {
        let (one, _) = pair();
        assert_ne!(sealed(&one, b"packet", 1)[HEADER..], sealed(&one, b"packet", 2)[HEADER..]);
        assert_ne!(epoch().unwrap(), epoch().unwrap());
    }
}
