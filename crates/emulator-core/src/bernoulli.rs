//! Decides whether a stage strikes: independently, or correlated with its decision before.

use crate::config::Model;
use crate::philox::{Purpose, Source};

/// A probability as netem holds it: `tc` rounds it to 32 bits.
pub(crate) fn netem_u32(probability: f64) -> u32 {
    (probability * f64::from(u32::MAX)).round_ties_even() as u32
}

/// A threshold that a 32-bit number is below with this probability; 2^32 for certainty.
fn threshold(probability: f64) -> u64 {
    (probability * (1u64 << 32) as f64).round() as u64
}

/// netem's `get_crandom`: an autoregressive mean that is not uniform any more, which is the point of it here.
#[derive(Clone, Debug)]
pub(crate) struct Crandom {
    rho: u32,
    last: u32,
}

impl Crandom {
    pub(crate) fn new(correlation: f64, start: u32) -> Self {
        Self { rho: netem_u32(correlation), last: start }
    }

    #[inline]
    pub(crate) fn next(&mut self, random: u32) -> u32 {
        if self.rho == 0 {
            return random;
        }
        let rho = u64::from(self.rho) + 1;
        // The kernel's sum of products wraps in 64 bits only if both factors are at their limits.
        let mixed = (u64::from(random) * ((1u64 << 32) - rho)).wrapping_add(u64::from(self.last) * rho);
        self.last = (mixed >> 32) as u32;
        self.last
    }
}

/// Whether a stage strikes, packet by packet.
#[derive(Clone, Debug)]
pub(crate) enum Bernoulli {
    /// A two-state Markov chain in its stationary state: the probability is exact and so is the lag-1
    /// correlation c, with P(strike | strike) = p + c(1-p) and P(strike | none) = p(1-c).
    Stated { first: u64, after_strike: u64, after_none: u64, before: Option<bool> },
    /// `probability >= get_crandom(...)`.
    Netem { probability: u32, crandom: Crandom },
}

impl Bernoulli {
    pub(crate) fn new(model: Model, p: f64, c: f64, source: &Source, purpose: Purpose) -> Self {
        match model {
            Model::Stated => Self::Stated {
                first: threshold(p),
                after_strike: threshold(p + c * (1.0 - p)),
                after_none: threshold(p * (1.0 - c)),
                before: None,
            },
            Model::Netem => Self::Netem { probability: netem_u32(p), crandom: Crandom::new(c, source.start(purpose)) },
        }
    }

    #[inline]
    pub(crate) fn fires(&mut self, random: u32) -> bool {
        match self {
            Self::Stated { first, after_strike, after_none, before } => {
                let threshold = match before {
                    None => *first,
                    Some(true) => *after_strike,
                    Some(false) => *after_none,
                };
                let strike = u64::from(random) < threshold;
                *before = Some(strike);
                strike
            }
            Self::Netem { probability, crandom } => *probability != 0 && *probability >= crandom.next(random),
        }
    }
}
