//! Holds the stages of a direction as they are written in JSON.

use serde::{Deserialize, Serialize};

use super::{Stage, Step};

/// The stages of a direction; a stage that is left out does nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stages {
    /// Loss at random, before the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// A packet followed by its copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplication: Option<Chance>,
    /// One bit of a packet inverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corruption: Option<Corruption>,
    /// Serialisation, and the queue in front of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Mean delay in microseconds, without the time in the queue and of serialisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_us: Option<f64>,
    /// Variation of the delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Packets that skip the delay and so overtake; needs `delay_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordering: Option<Reordering>,
}

/// A stage that strikes at random.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chance {
    /// 0 to 1.
    pub probability: f64,
    /// Correlation with the decision before, 0 to below 1.
    #[serde(default)]
    pub correlation: f64,
}

/// Loss at random.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Loss {
    /// Each packet by itself, or correlated with the one before.
    Independent {
        /// 0 to 1.
        probability: f64,
        /// Correlation with the decision before, 0 to below 1.
        #[serde(default)]
        correlation: f64,
    },
    /// Gilbert-Elliott: a good and a bad state, each with its own loss. Loss is drawn in the state before
    /// the transition, and the link starts in the good state, as in netem.
    GilbertElliott {
        /// Probability of going from good to bad, per packet.
        p: f64,
        /// Probability of going from bad to good, per packet; netem's default is `1 - p`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        r: Option<f64>,
        /// Probability of delivery in the bad state. (tc's argument is `1-h`.)
        #[serde(default)]
        h: f64,
        /// Probability of delivery in the good state. (tc's argument is `1-k`.)
        #[serde(default = "one")]
        k: f64,
    },
    /// netem's `loss state`: 1 delivers, 2 delivers inside a burst, 3 loses inside a burst, 4 loses alone.
    FourState {
        /// From 1 to 3: a burst begins.
        p13: f64,
        /// From 3 to 1: the burst ends; default `1 - p13`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        p31: Option<f64>,
        /// From 3 to 2: a delivery inside the burst.
        #[serde(default)]
        p32: f64,
        /// From 2 to 3: back to loss.
        #[serde(default = "one")]
        p23: f64,
        /// From 1 to 4: one loss alone.
        #[serde(default)]
        p14: f64,
    },
    /// Bursts in time: two states that hold for exponential times, whatever is sent meanwhile. Not in netem's model.
    Bursts {
        /// Mean length of a burst, in microseconds.
        burst_us: f64,
        /// Mean time from the start of a burst to the start of the next, in microseconds.
        every_us: f64,
        /// Probability that a packet is lost in a burst.
        #[serde(default = "one")]
        probability: f64,
        /// Probability that a packet is lost outside of bursts.
        #[serde(default)]
        outside: f64,
    },
    /// What was recorded, packet by packet.
    Pattern {
        /// `0` delivers and `1` loses.
        pattern: String,
        /// Begin again at the end; else everything after the end is delivered.
        #[serde(default = "yes")]
        repeat: bool,
    },
}

/// One bit of a packet inverted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Corruption {
    /// 0 to 1.
    pub probability: f64,
    /// Correlation with the decision before, 0 to below 1.
    #[serde(default)]
    pub correlation: f64,
    /// Bytes at the front of a frame that are spared. The default of the stated model is 14, the Ethernet
    /// header, so that the frame still reaches its node; netem spares nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_bytes: Option<u32>,
}

/// Serialisation, and the queue in front of it: either `rate_bps` or `trace`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Bit/s of frames: Ethernet header included, preamble, checksum and gap not (see `overhead_bytes`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Opportunities to deliver, as recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Bytes that may wait, the packet in transmission not counted; a packet that would exceed it is
    /// dropped at the tail. Left out: no bound in bytes. Not in netem's model, which has `limit_packets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// Packets that may wait, the packet in transmission not counted. Left out: no bound in packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<u32>,
    /// Drops before the queue is full. Not in netem's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codel: Option<Codel>,
    /// Added to the length of every packet; may be negative (-14 counts IP packets, 24 an Ethernet wire).
    #[serde(default)]
    pub overhead_bytes: i32,
    /// Payload of a cell, 0 for none: lengths are rounded up to whole cells (48 for ATM).
    #[serde(default)]
    pub cell_bytes: u32,
    /// Added to every cell (5 for ATM).
    #[serde(default)]
    pub cell_overhead_bytes: i32,
}

/// A delivery trace as Mahimahi records it: each entry is the moment of one opportunity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Milliseconds from the link's zero, ascending; several opportunities may share a moment. The trace
    /// begins again after its last entry.
    pub at_ms: Vec<u64>,
    /// What one opportunity carries: one packet or several, or a part of one. Left over is lost with it.
    #[serde(default = "full_frame")]
    pub bytes: u32,
}

/// CoDel (RFC 8289).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Codel {
    /// Acceptable standing delay of the queue; RFC 8289 says 5 ms.
    #[serde(default = "five_ms")]
    pub target_us: u64,
    /// The delay must stay above the target this long before the first drop; RFC 8289 says 100 ms.
    #[serde(default = "hundred_ms")]
    pub interval_us: u64,
}

/// Variation of the delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// For `uniform`, half the width; for a table, what its values multiply; for the others the standard
    /// deviation (exactly in the stated model; netem's pareto of 10 ms has 8.2 ms).
    pub jitter_us: f64,
    /// Shape.
    #[serde(default)]
    pub distribution: Distribution,
    /// Only with `distribution = "table"`: equally likely values in multiples of `jitter_us`, ascending (an
    /// inverse distribution function). netem's `.dist` files hold these times 8192.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<f64>,
    /// Lag-1 correlation of the delay, 0 to below 1.
    #[serde(default)]
    pub correlation: f64,
    /// Makes the jitter a process in time: microseconds after which the normal variable below the distribution is
    /// correlated by 1/e with what it was. Left out: every packet has its own. Not in netem's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_time_us: Option<f64>,
    /// Whether a packet waits for the one before it. Left out: yes in the stated model; netem cannot, its
    /// jitter reorders (unless it has a rate).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_order: Option<bool>,
}

/// Shape of the jitter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Equally likely within plus and minus `jitter_us`.
    #[default]
    Uniform,
    /// Normal.
    Normal,
    /// Pareto with shape 3, as netem's, cut at ten times its minimum (the last 0.1 %).
    Pareto,
    /// A quarter normal and three quarters pareto at the same quantile, as netem's.
    Paretonormal,
    /// The values in `table`.
    Table,
}

/// Packets that skip the delay, as netem defines it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// 0 to 1: chance of a packet whose turn it is (see `gap`).
    pub probability: f64,
    /// Correlation with the decision before, 0 to below 1.
    #[serde(default)]
    pub correlation: f64,
    /// `gap - 1` packets are always delayed after each one that was not.
    #[serde(default = "first")]
    pub gap: u32,
}

impl Stages {
    /// These stages after a step of the schedule.
    pub(crate) fn after(&self, step: &Step) -> Stages {
        fn over<T: Clone>(new: &Option<T>, old: &Option<T>) -> Option<T> {
            new.as_ref().or(old.as_ref()).cloned()
        }
        let mut now = Stages {
            loss: over(&step.set.loss, &self.loss),
            duplication: over(&step.set.duplication, &self.duplication),
            corruption: over(&step.set.corruption, &self.corruption),
            rate: over(&step.set.rate, &self.rate),
            delay_us: over(&step.set.delay_us, &self.delay_us),
            jitter: over(&step.set.jitter, &self.jitter),
            reordering: over(&step.set.reordering, &self.reordering),
        };
        for stage in &step.clear {
            match stage {
                Stage::Loss => now.loss = None,
                Stage::Duplication => now.duplication = None,
                Stage::Corruption => now.corruption = None,
                Stage::Rate => now.rate = None,
                Stage::DelayUs => now.delay_us = None,
                Stage::Jitter => now.jitter = None,
                Stage::Reordering => now.reordering = None,
            }
        }
        now
    }
}

fn one() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

fn first() -> u32 {
    1
}

/// A full Ethernet frame. Mahimahi's opportunity is 1504 bytes: a full IP packet and its TUN header.
fn full_frame() -> u32 {
    1514
}

fn five_ms() -> u64 {
    5_000
}

fn hundred_ms() -> u64 {
    100_000
}
