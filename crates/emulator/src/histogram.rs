//! Counts lateness in a histogram: log-linear buckets, 3 % wide, from a nanosecond to minutes.

use serde::Serialize;

const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;
const BUCKETS: usize = 40 * SUB;

/// Counts of nanoseconds.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    max: u64,
}

/// Quantiles in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Quantiles {
    pub count: u64,
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS].into(), count: 0, max: 0 }
    }
}

impl Histogram {
    #[inline]
    pub fn add(&mut self, ns: u64, times: u64) {
        self.counts[place(ns)] += times;
        self.count += times;
        self.max = self.max.max(ns);
    }

    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.max) = (0, 0);
    }

    pub fn quantiles(&self) -> Quantiles {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| self.quantile(share));
        Quantiles { count: self.count, p50, p99, p999, max: self.max as f64 / 1000.0 }
    }

    fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.count as f64).ceil() as u64;
        let mut seen = 0;
        for (place, &count) in self.counts.iter().enumerate() {
            seen += count;
            if count > 0 && seen >= rank {
                return upper(place).min(self.max) as f64 / 1000.0;
            }
        }
        0.0
    }
}

fn place(ns: u64) -> usize {
    if ns < SUB as u64 {
        return ns as usize;
    }
    let shift = ns.ilog2() - SUB_BITS;
    (((shift as usize) << SUB_BITS) + (ns >> shift) as usize).min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn upper(place: usize) -> u64 {
    if place < SUB {
        return place as u64;
    }
    let shift = (place >> SUB_BITS) - 1;
    (((place & (SUB - 1)) + SUB + 1) as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_bucket() {
        let mut histogram = Histogram::default();
        for ns in 1..=100_000 {
            histogram.add(ns, 1);
        }
        let q = histogram.quantiles();
        assert!((q.p50 / 50.0 - 1.0).abs() < 0.04 && (q.p99 / 99.0 - 1.0).abs() < 0.04, "{q:?}");
        assert_eq!(q.max, 100.0);
        histogram.clear();
        assert_eq!(histogram.quantiles().p999, 0.0);
    }

    #[test]
    fn buckets_hold_their_upper_bound() {
        for ns in [0, 1, 31, 32, 33, 63, 64, 1000, 123_456_789] {
            assert!(upper(place(ns)) >= ns, "{ns}");
        }
    }
}
