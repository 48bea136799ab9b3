//! Computes serialisation: when a packet that starts at a given time is through.

use crate::config::{Rate as Settings, Trace};

/// How long packets take.
#[derive(Clone, Debug)]
pub(crate) struct Rate {
    pace: Pace,
    overhead: i64,
    cell: u64,
    cell_overhead: i64,
    pub(crate) queue_bytes: u64,
    pub(crate) queue_packets: u64,
}

#[derive(Clone, Debug)]
enum Pace {
    /// Bit/s; `owed` is what rounding down to nanoseconds has left, in bit-nanoseconds below one bit/s, so
    /// that the long-run rate is exact.
    Constant {
        bps: u64,
        owed: u64,
    },
    Trace(Deliveries),
}

#[derive(Clone, Debug)]
struct Deliveries {
    at: Box<[u64]>,
    period: u64,
    bytes: u64,
    cycle: u64,
    next: usize,
    left: u64,
}

impl Rate {
    pub(crate) fn new(settings: &Settings) -> Self {
        let pace = match (&settings.trace, settings.rate_bps) {
            (Some(trace), _) => Pace::Trace(Deliveries::new(trace)),
            (None, bps) => Pace::Constant { bps: bps.unwrap_or(u64::MAX), owed: 0 },
        };
        Self {
            pace,
            overhead: i64::from(settings.overhead_bytes),
            cell: u64::from(settings.cell_bytes),
            cell_overhead: i64::from(settings.cell_overhead_bytes),
            queue_bytes: settings.queue_bytes.unwrap_or(u64::MAX),
            queue_packets: settings.queue_packets.map_or(u64::MAX, u64::from),
        }
    }

    /// When a packet of `len` bytes that starts at `start` after the link's zero is through; at the latest
    /// ten days on, which keeps absurd traces inside a `u64`.
    pub(crate) fn finish(&mut self, start: u64, len: u32) -> u64 {
        const LONGEST: u64 = 10 * 86_400 * 1_000_000_000;
        let len = self.on_wire(len);
        let finish = match &mut self.pace {
            Pace::Constant { bps, owed } => {
                let bit_ns = u128::from(len) * 8_000_000_000 + u128::from(*owed);
                *owed = (bit_ns % u128::from(*bps)) as u64;
                start.saturating_add(u64::try_from(bit_ns / u128::from(*bps)).unwrap_or(u64::MAX))
            }
            Pace::Trace(deliveries) => deliveries.finish(start, len),
        };
        finish.min(start + LONGEST)
    }

    /// A trace begins again: the times that follow are after a new zero.
    pub(crate) fn restart(&mut self) {
        if let Pace::Trace(deliveries) = &mut self.pace {
            (deliveries.cycle, deliveries.next, deliveries.left) = (0, 0, deliveries.bytes);
        }
    }

    /// netem's `packet_time_ns`: each packet rounded down to nanoseconds, at whole bytes a second.
    pub(crate) fn netem_time(&self, len: u32) -> u64 {
        let Pace::Constant { bps, .. } = self.pace else { return 0 };
        (u128::from(self.on_wire(len)) * 1_000_000_000 / u128::from(bps / 8)) as u64
    }

    fn on_wire(&self, len: u32) -> u64 {
        let len = (i64::from(len) + self.overhead).max(0) as u64;
        if self.cell == 0 {
            return len;
        }
        len.div_ceil(self.cell) * (self.cell as i64 + self.cell_overhead) as u64
    }
}

impl Deliveries {
    fn new(trace: &Trace) -> Self {
        let at: Box<[u64]> = trace.at_ms.iter().map(|ms| ms * 1_000_000).collect();
        let period = at.last().copied().unwrap_or(1).max(1);
        let bytes = u64::from(trace.bytes);
        Self { at, period, bytes, cycle: 0, next: 0, left: bytes }
    }

    fn now(&self) -> u64 {
        self.cycle.saturating_mul(self.period).saturating_add(self.at[self.next])
    }

    fn step(&mut self) {
        self.left = self.bytes;
        self.next += 1;
        if self.next == self.at.len() {
            self.next = 0;
            self.cycle += 1;
        }
    }

    fn finish(&mut self, start: u64, len: u64) -> u64 {
        if self.now() < start {
            // Opportunities that were not used are gone, and so is the rest of one that was begun.
            let cycle = start / self.period;
            if cycle > self.cycle {
                // One back: an entry at the very end of a cycle is the beginning of the next.
                self.cycle = cycle - 1;
                self.next = 0;
            }
            self.left = self.bytes;
            let within = start - (self.cycle * self.period).min(start);
            self.next = self.at.partition_point(|&at| at < within);
            if self.next == self.at.len() {
                self.next = 0;
                self.cycle += 1;
                let within = start - (self.cycle * self.period).min(start);
                self.next = self.at.partition_point(|&at| at < within);
            }
        }
        let mut rest = len;
        if rest > self.left {
            // Whole rounds of the trace at once: nothing may take longer for being long.
            rest -= self.left;
            self.step();
            let round = self.at.len() as u64 * self.bytes;
            let rounds = (rest - 1) / round;
            self.cycle = self.cycle.saturating_add(rounds);
            rest -= rounds * round;
        }
        loop {
            if rest <= self.left {
                self.left -= rest;
                let at = self.now();
                if self.left == 0 {
                    self.step();
                }
                return at;
            }
            rest -= self.left;
            self.step();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(at_ms: &[u64]) -> Rate {
        let trace = Trace { at_ms: at_ms.to_vec(), bytes: 1500 };
        Rate::new(&Settings { trace: Some(trace), ..Settings::default() })
    }

    #[test]
    fn the_long_run_rate_is_exact() {
        let mut rate = Rate::new(&Settings { rate_bps: Some(7), ..Settings::default() });
        let end = (0..7000).fold(0, |start, _| rate.finish(start, 1));
        assert_eq!(end, 8_000 * 1_000_000_000);
    }

    #[test]
    fn cells_are_whole() {
        let settings = Settings { rate_bps: Some(8), cell_bytes: 48, cell_overhead_bytes: 5, ..Settings::default() };
        assert_eq!(Rate::new(&settings).netem_time(49), 106 * 1_000_000_000);
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let mut rate = trace(&[1, 3, 4]);
        assert_eq!(rate.finish(0, 700), 1_000_000);
        assert_eq!(rate.finish(1_000_000, 700), 1_000_000);
        assert_eq!(rate.finish(1_000_000, 1500), 3_000_000);
        assert_eq!(rate.finish(3_000_000, 2800), 4_000_000 + 1_000_000);
        let mut rate = trace(&[1, 3, 4]);
        assert_eq!(rate.finish(0, 3 * 1500 * 1000), 4_000_000 * 1000);
        assert_eq!(rate.finish(4_000_000_000, 1), 4_001_000_000);
    }

    #[test]
    fn unused_opportunities_are_lost_and_the_trace_begins_again() {
        let mut rate = trace(&[1, 3, 4]);
        assert_eq!(rate.finish(3_500_000, 100), 4_000_000);
        assert_eq!(rate.finish(4_100_000, 1500), 5_000_000);
        assert_eq!(rate.finish(4_000_000_000, 1500), 4_000_000_000);
        assert_eq!(rate.finish(4_000_000_001, 1500), 4_001_000_000);
    }
}
