//! Holds the configuration of a link as it is written in JSON; `docs/emulator.md` describes it for people.
//!
//! Units are in the field names. Fields that are left out take the defaults given here; unknown fields
//! are refused. [`Config::check`] refuses what cannot be delivered, naming the field.

use serde::{Deserialize, Serialize};

mod check;
mod stages;
#[cfg(test)]
mod tests;
pub use check::Invalid;
pub use stages::{Chance, Codel, Corruption, Distribution, Jitter, Loss, Rate, Reordering, Stages, Trace};

/// A link: its seed and what it does to packets in each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Root of every random decision. The same seed meets the same decisions, packet by packet.
    #[serde(default)]
    pub seed: u64,
    /// Number of this link in the lab. Links with the same seed and different numbers are independent.
    #[serde(default)]
    pub link: u32,
    /// A packet goes through the first direction that matches its ports; the place in this list is part of
    /// the key of the direction's random decisions.
    pub directions: Vec<Direction>,
}

/// One direction of a link: which packets it takes and the stages they pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// How reports call it.
    pub name: String,
    /// Port at which its packets enter; left out: any port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Port at which its packets leave; left out: any port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Whether the stages deliver what they state or what netem would do with the same figures.
    #[serde(default)]
    pub model: Model,
    /// What one decision is taken for.
    #[serde(default)]
    pub unit: Unit,
    /// netem's `limit`: packets that may be waiting; only with `model = "netem"`, where the default is 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_packets: Option<u32>,
    /// Microseconds that each packet takes after all stages, whatever they did to it: the distance. Neither jitter nor
    /// reordering shortens it, and netem's `limit` does not count the packets in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub propagation_us: Option<f64>,
    /// What happens to packets at first, and until the schedule changes it.
    #[serde(default)]
    pub stages: Stages,
    /// Windows of time in which every packet that enters is lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blackouts: Vec<Blackout>,
    /// Changes of the stages at given times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
}

/// Two readings of the same figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// The marginal rate and distribution exactly, and the lag-1 correlation asked for.
    #[default]
    Stated,
    /// netem's own arithmetic and order of decisions (`net/sched/sch_netem.c` of Linux 6.18), for
    /// repeating what was published with it. Its correlations do not do what they say.
    Netem,
}

/// What one decision is taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A packet as it would be on a wire; super-packets are split.
    #[default]
    Wire,
    /// What the sender hands over: a super-packet of up to 64 KiB is lost, delayed or reordered as one.
    Gso,
}

/// A window of time in which every packet that enters is lost; what is already inside still leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blackout {
    /// From the link's zero.
    pub start_us: u64,
    /// How long.
    pub length_us: u64,
    /// Period: again so long after each start. Left out: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_us: Option<u64>,
}

/// Changes of the stages at given times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Length of the whole, which then begins again with the direction's own `stages`. Left out: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat_us: Option<u64>,
    /// In ascending order of time.
    pub steps: Vec<Step>,
}

/// One change: what it sets stays until a later step changes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// From the link's zero (of each repetition).
    pub at_us: u64,
    /// Stages that are replaced, whole.
    #[serde(default)]
    pub set: Stages,
    /// Stages that are taken out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clear: Vec<Stage>,
    /// Whether the link is cut from here on: `true` loses everything that enters, until a step says `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<bool>,
}

/// The name of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are those of the fields of `Stages`")]
pub enum Stage {
    Loss,
    Duplication,
    Corruption,
    Rate,
    DelayUs,
    Jitter,
    Reordering,
}
