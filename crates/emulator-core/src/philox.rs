//! Computes random numbers with Philox4x32-10, a function from a counter and a key to 128 random bits.
//!
//! Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A decision for
//! packet n is computed from n, so it does not depend on what was drawn before or when.

/// Philox4x32 with ten rounds.
#[inline]
pub fn philox(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            // The key schedule's Weyl constants: the golden ratio and the square root of 3, less 1.
            k[0] = k[0].wrapping_add(0x9E37_79B9);
            k[1] = k[1].wrapping_add(0xBB67_AE85);
        }
        let a = u64::from(c[0]) * 0xD251_1F53;
        let b = u64::from(c[2]) * 0xCD9E_8D57;
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
    }
    c
}

/// What a random number is for; part of the counter, so that stages never share a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are those of the stages")]
pub enum Purpose {
    Loss = 1,
    Duplication = 2,
    Corruption = 3,
    Jitter = 4,
    Reordering = 5,
    Wander = 6,
    Burst = 7,
}

/// The random numbers of one direction of one link.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    key: [u32; 2],
    link: u32,
    direction: u16,
}

/// The number of no packet: for what is drawn once, at the start.
const START: u64 = u64::MAX;

impl Source {
    /// Numbers that depend on the seed, the link and the place of the direction.
    pub fn new(seed: u64, link: u32, direction: u16) -> Self {
        Self { key: [seed as u32, (seed >> 32) as u32], link, direction }
    }

    /// 128 bits for one decision on packet `n` (or stretch of time `n`). `copy` is true for a duplicate.
    #[inline]
    pub fn draw(&self, purpose: Purpose, n: u64, copy: bool) -> [u32; 4] {
        let what = u32::from(self.direction) << 16 | u32::from(copy) << 8 | purpose as u32;
        philox([n as u32, (n >> 32) as u32, what, self.link], self.key)
    }

    /// A number for the state in which a stage begins.
    pub fn start(&self, purpose: Purpose) -> u32 {
        self.draw(purpose, START, false)[0]
    }
}

/// 52 random bits as a number strictly between 0 and 1.
#[inline]
pub fn open_unit(words: [u32; 4]) -> f64 {
    let bits = u64::from(words[0]) << 20 | u64::from(words[1]) >> 12;
    (bits as f64 + 0.5) / (1u64 << 52) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_known_answers_of_random123() {
        for (counter, key, answer) in [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ] {
            assert_eq!(philox(counter, key), answer);
        }
    }

    #[test]
    fn the_open_unit_is_open() {
        assert!(open_unit([0; 4]) > 0.0);
        assert!(open_unit([u32::MAX; 4]) < 1.0);
    }
}
