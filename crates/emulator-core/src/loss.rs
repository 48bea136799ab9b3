//! Implements the loss models: independent, Gilbert-Elliott, netem's four states, bursts in time, a recorded pattern.

use crate::bernoulli::{Bernoulli, netem_u32};
use crate::bursts::Bursts;
use crate::config::{Loss as Settings, Model};
use crate::philox::{Purpose, Source};

/// Whether packets are lost, one after another.
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    Independent(Bernoulli),
    GilbertElliott {
        p: u32,
        r: u32,
        h: u32,
        lost_in_good: u32,
        bad: bool,
    },
    /// `out13`: p13 + p14, `out31`: p31 + p32, the chances to leave those states.
    FourState {
        p32: u32,
        p23: u32,
        p14: u32,
        out13: u32,
        out31: u32,
        state: State,
    },
    Bursts(Bursts),
    Pattern {
        pattern: Box<[u8]>,
        repeat: bool,
    },
}

/// States of netem's four-state model by its own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    TxInGap,
    TxInBurst,
    LostInBurst,
    LostInGap,
}

impl Loss {
    pub(crate) fn new(settings: &Settings, model: Model, source: &Source) -> Self {
        match settings {
            Settings::Independent { probability, correlation } => {
                Self::Independent(Bernoulli::new(model, *probability, *correlation, source, Purpose::Loss))
            }
            Settings::GilbertElliott { p, r, h, k } => Self::GilbertElliott {
                p: netem_u32(*p),
                r: netem_u32(r.unwrap_or(1.0 - p)),
                h: netem_u32(*h),
                lost_in_good: netem_u32(1.0 - k),
                bad: false,
            },
            Settings::FourState { p13, p31, p32, p23, p14 } => {
                // In netem two chances that make 1 together wrap to 0, and the state is never left by the second.
                let sum: fn(u32, u32) -> u32 = match model {
                    Model::Netem => u32::wrapping_add,
                    Model::Stated => u32::saturating_add,
                };
                let (p14, p32) = (netem_u32(*p14), netem_u32(*p32));
                Self::FourState {
                    p32,
                    p23: netem_u32(*p23),
                    p14,
                    out13: sum(netem_u32(*p13), p14),
                    out31: sum(netem_u32(p31.unwrap_or(1.0 - p13)), p32),
                    state: State::TxInGap,
                }
            }
            Settings::Bursts { burst_us, every_us, probability, outside } => {
                Self::Bursts(Bursts::new(*burst_us, *every_us, *probability, *outside, source))
            }
            Settings::Pattern { pattern, repeat } => {
                Self::Pattern { pattern: pattern.bytes().map(|mark| mark - b'0').collect(), repeat: *repeat }
            }
        }
    }

    /// Whether packet `n` is lost, given its random words and when it enters (nanoseconds since the link's zero).
    ///
    /// The two state models are netem's `loss_gilb_ell` and `loss_4state` in both models, but for sums that wrap: their
    /// 32-bit comparisons are off by 2^-32 at most.
    #[inline]
    pub(crate) fn loses(&mut self, n: u64, words: [u32; 4], since: u64) -> bool {
        match self {
            Self::Independent(chance) => chance.fires(words[0]),
            Self::GilbertElliott { p, r, h, lost_in_good, bad } => {
                if *bad {
                    *bad = words[0] >= *r;
                    words[1] > *h
                } else {
                    *bad = words[0] < *p;
                    words[1] < *lost_in_good
                }
            }
            Self::FourState { p32, p23, p14, out13, out31, state } => {
                let random = words[0];
                match state {
                    State::TxInGap => {
                        if random < *p14 {
                            *state = State::LostInGap;
                            true
                        } else if *p14 < random && random < *out13 {
                            *state = State::LostInBurst;
                            true
                        } else {
                            false
                        }
                    }
                    State::TxInBurst => {
                        let lost = random < *p23;
                        if lost {
                            *state = State::LostInBurst;
                        }
                        lost
                    }
                    State::LostInBurst => {
                        if random < *p32 {
                            *state = State::TxInBurst;
                            false
                        } else if *p32 < random && random < *out31 {
                            *state = State::TxInGap;
                            false
                        } else {
                            // Equality with a bound delivers without a change of state, as in netem.
                            *out31 < random
                        }
                    }
                    State::LostInGap => {
                        *state = State::TxInGap;
                        false
                    }
                }
            }
            Self::Bursts(bursts) => bursts.loses(since, words[0]),
            Self::Pattern { pattern, repeat } => {
                let length = pattern.len() as u64;
                if *repeat { pattern[(n % length) as usize] == 1 } else { n < length && pattern[n as usize] == 1 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_of_a_state_that_make_one_together_are_both_taken() {
        let settings = Settings::FourState { p13: 0.1, p31: Some(0.9), p32: 0.1, p23: 1.0, p14: 0.0 };
        let source = Source::new(1, 0, 0);
        let mut loss = Loss::new(&settings, Model::Stated, &source);
        let mut word = 0x9e37_79b9u32;
        let lost = (0..100_000u64)
            .filter(|&n| {
                word ^= word << 13;
                word ^= word >> 17;
                word ^= word << 5;
                loss.loses(n, [word, 0, 0, 0], 0)
            })
            .count();
        // The chain's own shares: 0.1 of the packets in the gap begin a burst, whose states follow from the rest.
        assert!((5_000..20_000).contains(&lost), "{lost}");
    }
}
