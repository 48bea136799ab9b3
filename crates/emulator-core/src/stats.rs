//! Counts what a direction realised, stage by stage.

use serde::Serialize;

/// Packets by what became of them. A packet that was offered is dropped, waits, or left.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Offered to the direction.
    pub offered: u64,
    /// Bytes offered.
    pub offered_bytes: u64,
    /// Left, copies included.
    pub sent: u64,
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Dropped, by cause.
    pub dropped: Dropped,
    /// Copies made.
    pub duplicated: u64,
    /// Left with one bit inverted.
    pub corrupted: u64,
    /// Skipped the delay.
    pub reordered: u64,
    /// Waited for the packet before them, beyond their own delay.
    pub held: u64,
    /// Had a delay below zero, which became none.
    pub clipped: u64,
    /// Runs of consecutive losses by the loss stage.
    pub loss_runs: u64,
    /// Delay given by the delay stage in microseconds (queue and serialisation apart).
    pub delay_us: Moments,
    /// Time from being offered to the start of serialisation in microseconds.
    pub queued_us: Moments,
    /// Most bytes that waited at once.
    pub queue_peak_bytes: u64,
    /// All random decisions as one number: two runs with the same number met the same decisions.
    pub decisions: u64,
}

/// Dropped packets by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// By the loss stage.
    pub loss: u64,
    /// In a blackout, or while a step says `down`.
    pub blackout: u64,
    /// At the tail of a full queue (netem: its limit).
    pub queue: u64,
    /// By CoDel.
    pub codel: u64,
}

/// Mean, deviation, extremes and lag-1 correlation of a sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Moments {
    /// How many values.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Correlation of each value with the one before; 0 where nothing varies.
    pub lag1: f64,
}

/// Sums from which [`Moments`] are taken. Values are taken relative to the first, which keeps the
/// squares small where they vary little around something large.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    count: u64,
    first: f64,
    last: f64,
    sum: f64,
    squares: f64,
    products: f64,
    min: f64,
    max: f64,
}

impl Sums {
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        let value = ns as f64 / 1000.0;
        if self.count == 0 {
            (self.first, self.min, self.max) = (value, value, value);
        }
        let x = value - self.first;
        if self.count > 0 {
            self.products += x * self.last;
        }
        self.count += 1;
        self.sum += x;
        self.squares += x * x;
        self.last = x;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    pub(crate) fn moments(&self) -> Moments {
        if self.count == 0 {
            return Moments::default();
        }
        let n = self.count as f64;
        let mean = self.sum / n;
        let variance = (self.squares / n - mean * mean).max(0.0);
        let pairs = (n - 1.0).max(1.0);
        // Ends: the first value (0 by construction) has no predecessor, the last no successor.
        let covariance = self.products / pairs - (self.sum / pairs) * ((self.sum - self.last) / pairs);
        // Below a picosecond of deviation there is only the rounding of the sums.
        let lag1 = if variance > 1e-12 { covariance / variance } else { 0.0 };
        Moments {
            count: self.count,
            mean: self.first + mean,
            deviation: variance.sqrt(),
            min: self.min,
            max: self.max,
            lag1,
        }
    }
}
