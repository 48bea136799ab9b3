//! The search for the highest rate within a bound of loss, as decisions without I/O.
//!
//! In RFC 2544 the throughput is the fastest rate at which nothing is lost (section 26.1), and a trial takes 60 s
//! (section 24). A bound above zero is RFC 8219's and common practice. Here trials take tenths of a second, so two
//! rules are added. A rate passes only if the path also keeps up: the least one-way delay must not grow over the trial,
//! or a queue is absorbing what a longer trial would lose. And the rate that is reported has passed a longer trial at
//! that very rate.

use serde::Serialize;

use crate::trial::Trial;

/// Datagrams that the lowest rate that is tried has in a confirming trial.
const FEWEST: f64 = 100.0;

/// How many rates are tried before the search makes do with what it knows.
const MOST_RATES: usize = 18;

/// How many rates a confirming trial is tried at.
const MOST_CONFIRMED: u32 = 6;

/// A share of loss this far above what is allowed is not a mishap: the trial is not repeated.
const CLEAR: f64 = 0.005;

/// Seconds by which the sender was late in a trial that deserves another chance: it offered a burst then.
const STALLED: f64 = 0.001;

/// Datagrams a second with which the ascent begins: some 12 Mbit/s of full packets.
const LOWEST: f64 = 1000.0;

/// How often the ascent doubles at most; beyond is what no sender reaches.
const DOUBLINGS: u32 = 13;

/// A path does not keep up in the ascent if less than this share arrives, apart from the loss of the trials before.
const KEPT: f64 = 0.75;

/// Something that trials can be carried out on.
pub trait Path {
    /// A trial at that rate in datagrams a second, for so many seconds.
    fn trial(&mut self, rate: f64, seconds: f64) -> Result<Trial, String>;
}

/// What the ascent found: about what a path carries, and what was offered on the way.
pub struct Ascent {
    /// The last trial, at a rate that the path or the sender did not keep.
    pub last: Trial,
    /// The most that the sender offered, in datagrams a second.
    pub offered_max: f64,
    /// Datagrams sent in all.
    pub sent: u64,
}

/// Doubles the rate until the path or the sender does not keep it.
///
/// So a path is never asked for much more than twice what it carries. All that a sender can send, at once, is more than
/// what carries the link may be able to take: what is lost there says nothing of the path.
pub fn ascend<P: Path>(path: &mut P, seconds: f64) -> Result<Ascent, String> {
    let (mut rate, mut offered_max) = (LOWEST, 0.0);
    let (mut sent, mut lost) = (0, 0);
    for doubling in 0.. {
        let last = path.trial(rate, seconds)?;
        offered_max = f64::max(offered_max, last.offered);
        let before = lost as f64 / f64::max(sent as f64, 1.0);
        sent += last.sent;
        lost += last.lost;
        let kept = (1.0 - before) * KEPT;
        let arrived = 1.0 - last.lost as f64 / last.sent.max(1) as f64;
        let slow = last.delivered < kept * last.offered || arrived < kept || last.offered < KEPT * rate;
        if slow || doubling == DOUBLINGS {
            return Ok(Ascent { last, offered_max, sent });
        }
        rate *= 2.0;
    }
    unreachable!("it returns at the last doubling")
}

/// How thoroughly to search.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Seconds of a trial.
    pub trial: f64,
    /// Seconds of a confirming trial.
    pub confirm: f64,
    /// The search ends when the lowest rate that fails is at most this share above the highest that passes.
    pub resolution: f64,
    /// The share that the path loses at any rate and that no bound counts; zero for the RFCs' throughput.
    pub path_loss: f64,
    /// How often a rate that lost too much is tried again though its delay did not grow: a burst of the path's own loss
    /// takes a share of a short trial at any rate. Zero for the RFCs' throughput, which such a burst ends.
    pub again: u32,
}

/// Which part of the laboratory, and not the path, ended a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// The sender could not offer more, or not evenly.
    Sender,
    /// The receiver's socket was full: the program that counts was not quick enough.
    Receiver,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The confirming trial; none if not even the lowest rate passed.
    pub confirmed: Option<Trial>,
    /// The lowest rate above it that failed, in datagrams a second; none if none did.
    pub failed: Option<f64>,
    /// What else than the path was the limit: it may well carry more than was found.
    pub limit: Option<Limit>,
    /// What the sender could offer at most, in datagrams a second.
    pub offered_max: f64,
}

/// A rate that failed, and whether that was the path's doing.
type Failure = (f64, Option<Limit>);

/// A search on one path at one size; trials serve for several bounds.
pub struct RateSearch<'a, P: Path> {
    path: &'a mut P,
    limits: Limits,
    known: Vec<Trial>,
    offered_max: f64,
}

impl<'a, P: Path> RateSearch<'a, P> {
    /// A search on that path, on which the sender could offer `offered_max`.
    pub fn new(path: &'a mut P, limits: Limits, offered_max: f64) -> RateSearch<'a, P> {
        RateSearch { path, limits, known: Vec::new(), offered_max }
    }

    /// The highest rate with at most the share `bound` of loss. It starts from `guess`.
    pub fn highest(&mut self, bound: f64, guess: f64) -> Result<Found, String> {
        let floor = FEWEST / self.limits.confirm;
        let step = 1.0 + self.limits.resolution;
        let mut stride = 2.0 * self.limits.resolution;
        for _ in 0..MOST_RATES {
            let most = self.offered_max;
            let rate = match self.bracket(bound) {
                (Some(low), Some((high, _))) if high <= low * step => break,
                (Some(low), Some((high, _))) => (low * high).sqrt(),
                (Some(low), None) if low * step > most => {
                    // It was never asked for more, or something else slowed it down then.
                    self.offered_max = most.max(self.path.trial(2.0 * most, self.limits.trial)?.offered);
                    if self.offered_max <= most * step {
                        break;
                    }
                    continue;
                }
                (Some(low), None) => widen(&mut stride, |by| (low * by).min(most)),
                (None, Some((high, _))) if high <= floor * step => break,
                (None, Some((high, _))) => widen(&mut stride, |by| (high / by).max(floor)),
                (None, None) => guess.clamp(floor, most.max(floor)),
            };
            let trial = self.attempt(rate, self.limits.trial, bound)?;
            if self.passes(&trial, bound) && self.behind(&trial) {
                break; // asking for more brings no more
            }
        }
        let (low, failure) = self.bracket(bound);
        match low {
            Some(low) => self.confirm(low, failure, bound),
            None => Ok(self.none(failure)),
        }
    }

    fn confirm(&mut self, low: f64, failure: Option<Failure>, bound: f64) -> Result<Found, String> {
        let (mut rate, mut failure) = (low, failure);
        let mut stride = self.limits.resolution;
        for _ in 0..MOST_CONFIRMED {
            let trial = self.attempt(rate, self.limits.confirm, bound)?;
            if self.passes(&trial, bound) {
                let limit = match failure {
                    None => Some(Limit::Sender),
                    _ if self.behind(&trial) => Some(Limit::Sender),
                    Some((_, limit)) => limit,
                };
                let (failed, offered_max) = (failure.map(|(rate, _)| rate), self.offered_max);
                return Ok(Found { confirmed: Some(trial), failed, limit, offered_max });
            }
            failure = Some(self.failure(&trial));
            rate /= 1.0 + stride;
            stride *= 3.0;
        }
        Ok(self.none(failure))
    }

    fn none(&self, failure: Option<Failure>) -> Found {
        let (failed, limit) = (failure.map(|(rate, _)| rate), failure.and_then(|(_, limit)| limit));
        Found { confirmed: None, failed, limit, offered_max: self.offered_max }
    }

    /// One trial; another if it failed in a way that may have been a mishap of the machine.
    fn attempt(&mut self, rate: f64, seconds: f64, bound: f64) -> Result<Trial, String> {
        let first = self.trial(rate, seconds)?;
        let passed = self.passes(&first, bound);
        let clear = self.limits.lost(&first) > bound + CLEAR && first.late < STALLED;
        if !passed && clear && self.limits.keeps_up(&first) && !self.behind(&first) {
            for _ in 0..self.limits.again {
                let next = self.trial(rate, seconds)?;
                if self.passes(&next, bound) {
                    // What failed before it met a burst, and says nothing of the rate.
                    self.known.retain(|trial| trial.asked != first.asked || self.limits.passes(trial, bound));
                    return Ok(next);
                }
            }
        }
        if (passed && !self.behind(&first)) || (!passed && clear) {
            return Ok(first);
        }
        let second = self.trial(rate, seconds)?;
        let better = self.passes(&second, bound) && (!passed || second.offered > first.offered);
        Ok(if better || !passed { second } else { first })
    }

    fn trial(&mut self, rate: f64, seconds: f64) -> Result<Trial, String> {
        let trial = self.path.trial(rate, seconds)?;
        self.known.push(trial.clone());
        Ok(trial)
    }

    /// The highest rate that passed, and the lowest above it that failed.
    fn bracket(&self, bound: f64) -> (Option<f64>, Option<Failure>) {
        let (passed, failed): (Vec<_>, Vec<_>) = self.known.iter().partition(|trial| self.passes(trial, bound));
        let low = passed.iter().map(|trial| trial.offered).reduce(f64::max);
        let above =
            failed.iter().map(|trial| self.failure(trial)).filter(|(rate, _)| low.is_none_or(|low| *rate > low));
        (low, above.min_by(|one, other| one.0.total_cmp(&other.0)))
    }

    /// A sender that falls behind sends in bursts afterwards, so the rate that failed is the one it was asked for.
    fn failure(&self, trial: &Trial) -> Failure {
        let limit = if self.behind(trial) {
            Some(Limit::Sender)
        } else {
            (2 * trial.dropped > trial.lost).then_some(Limit::Receiver)
        };
        (trial.asked.unwrap_or(trial.offered), limit)
    }

    fn passes(&self, trial: &Trial, bound: f64) -> bool {
        self.limits.passes(trial, bound)
    }

    /// Whether the sender stayed behind the rate it was asked for.
    fn behind(&self, trial: &Trial) -> bool {
        trial.asked.is_some_and(|asked| trial.offered * (1.0 + self.limits.resolution) < asked)
    }
}

impl Limits {
    fn passes(&self, trial: &Trial, bound: f64) -> bool {
        self.lost(trial) <= bound && self.keeps_up(trial)
    }

    /// The share that was lost, minus what the path loses at any rate, minus three standard deviations for its chance.
    fn lost(&self, trial: &Trial) -> f64 {
        let (always, sent) = (self.path_loss, trial.sent.max(1) as f64);
        trial.lost as f64 / sent - always - 3.0 * (always * (1.0 - always) / sent).sqrt()
    }

    /// Whether the least delay grew by less than it would if the path fell half the resolution behind the sender.
    ///
    /// A datagram's own place is granted on top: a shaper lets them go one by one.
    fn keeps_up(&self, trial: &Trial) -> bool {
        let allowed = trial.seconds * self.resolution / 2.0 + 1.0 / trial.offered;
        trial.growth.is_none_or(|growth| growth <= allowed)
    }
}

/// A rate by the stride, which is four times as long the next time.
fn widen(stride: &mut f64, rate: impl Fn(f64) -> f64) -> f64 {
    let by = 1.0 + *stride;
    *stride *= 4.0;
    rate(by)
}

#[cfg(test)]
#[path = "rate_search_tests.rs"]
mod tests;
