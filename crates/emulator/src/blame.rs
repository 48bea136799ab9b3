//! Finds the emulator's own lateness: what is left of lateness without the time in which the machine itself paused.
//!
//! Clocks of the lab see pauses (`tunnelmark-cores watch`), and reports of them arrive on standard input every few seconds.
//! Until then late departures wait here. Where no reports arrive at all, nothing is excused.

use std::collections::VecDeque;

use serde::Deserialize;

use crate::histogram::{Histogram, Quantiles};

/// Nanoseconds of lateness from which a departure waits for reports of pauses; below, lateness is the emulator's own.
const SUSPECT: u64 = 200_000;
/// Departures that may wait; the lateness of any more is the emulator's own.
const MOST: usize = 1 << 16;
/// Nanoseconds for which a reported pause is kept: a packet that was due in it may leave after the report.
const KEPT: u64 = 5_000_000_000;

/// A core paused, at some time between these two (nanoseconds of the monotonic clock).
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Pause(pub u32, pub u64, pub u64);

/// Pauses up to a moment: as they arrive, those that were not reported before.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    pub until: u64,
    pub pauses: Vec<Pause>,
}

impl Pauses {
    /// Adds what is reported later. Pauses are in the order of their ends.
    pub fn add(&mut self, later: Self) {
        self.until = self.until.max(later.until);
        self.pauses.extend(later.pauses);
        self.pauses.sort_unstable_by_key(|pause| pause.2);
    }

    /// Adds what is reported later, and forgets what no departure will have met: long before the report before, whose
    /// departures are divided by now. All of this one is kept, however long ago the other was.
    pub fn follow(&mut self, later: Self) {
        let since = self.until.saturating_sub(KEPT);
        self.pauses.retain(|pause| pause.2 > since);
        self.add(later);
    }

    /// Nanoseconds between two moments in which a core paused.
    fn still(&self, core: u32, from: u64, to: u64) -> u64 {
        let (mut still, mut upto) = (0, from);
        let first = self.pauses.partition_point(|pause| pause.2 <= from);
        for &Pause(_, begin, end) in self.pauses[first..].iter().filter(|pause| pause.0 == core && pause.1 < to) {
            let (begin, end) = (begin.max(upto), end.min(to));
            still += end.saturating_sub(begin);
            upto = upto.max(end);
        }
        still
    }
}

/// Departures that were late: due, left, on which cores the thread slept and ran, how many.
#[derive(Clone, Copy)]
struct Late {
    due: u64,
    left: u64,
    slept: u32,
    ran: u32,
    packets: u32,
}

/// Lateness that is the emulator's own, what pauses explain, and late departures whose cause is not known yet.
#[derive(Default)]
pub struct Blame {
    own: Histogram,
    excused: Histogram,
    waiting: VecDeque<Late>,
    told: bool,
}

impl Blame {
    /// Packets that should have left at `due` left at `left`. `cores` are the one on which the thread slept last, and
    /// the one on which it runs.
    #[inline]
    pub fn left(&mut self, due: u64, left: u64, packets: u32, cores: impl FnOnce() -> (u32, u32)) {
        let late = left - due;
        if late < SUSPECT || self.waiting.len() >= MOST {
            self.own.add(late, u64::from(packets));
            return;
        }
        let (slept, ran) = cores();
        self.waiting.push_back(Late { due, left, slept, ran, packets });
    }

    /// Divides the lateness of departures up to the moment to which pauses are known, of so many of them at the most.
    #[inline]
    pub fn settle(&mut self, known: &Pauses, most: usize) {
        self.told |= known.until > 0;
        for _ in 0..most {
            let Some(late) = self.waiting.front().filter(|late| late.left <= known.until) else { return };
            let packets = u64::from(late.packets);
            let [slept, ran] = [late.slept, late.ran].map(|core| known.still(core, late.due, late.left));
            let excused = slept.max(ran);
            self.own.add(late.left - late.due - excused, packets);
            if excused > 0 {
                self.excused.add(excused, packets);
            }
            self.waiting.pop_front();
        }
    }

    /// Own lateness of all departures up to the last report of pauses. Of those since, why they were late is not known yet.
    pub fn quantiles(&self) -> Quantiles {
        let mut all = self.own.clone();
        for late in self.waiting.iter().filter(|_| !self.told) {
            all.add(late.left - late.due, u64::from(late.packets));
        }
        all.quantiles()
    }

    /// How much of their lateness pauses explain, of the departures that met one.
    pub fn excused(&self) -> Quantiles {
        self.excused.quantiles()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn late(due: u64, left: u64, packets: u32, slept: u32, ran: u32) -> Blame {
        let mut blame = Blame::default();
        blame.left(due, left, packets, || (slept, ran));
        blame
    }

    #[test]
    fn what_a_pause_explains_is_not_the_emulators() {
        let told = Pauses { until: 30 * MS, pauses: vec![Pause(1, 8 * MS, 14 * MS), Pause(0, 9 * MS, 20 * MS)] };
        let mut blame = late(10 * MS, 15 * MS, 7, 1, 1);
        assert_eq!(blame.quantiles().max, 5000.0, "unknown pauses excuse nothing");
        blame.settle(&told, 9);
        assert_eq!((blame.quantiles().count, blame.quantiles().max), (7, 1000.0));
        assert_eq!((blame.excused().count, blame.excused().max), (7, 4000.0));
        // It slept on the one core and ran on the other: the longer pause explains it.
        let mut blame = late(10 * MS, 15 * MS, 1, 0, 1);
        blame.settle(&told, 9);
        assert_eq!(blame.quantiles().max, 0.0);
    }

    #[test]
    fn pauses_of_other_cores_and_other_times_excuse_nothing() {
        let told = Pauses {
            until: 30 * MS,
            pauses: vec![Pause(1, 0, 10 * MS), Pause(1, 15 * MS, 20 * MS), Pause(2, 0, 30 * MS)],
        };
        let mut blame = late(10 * MS, 15 * MS, 1, 1, 1);
        blame.settle(&told, 9);
        assert_eq!((blame.quantiles().max, blame.excused().count), (5000.0, 0));
    }

    #[test]
    fn pauses_that_meet_count_once() {
        let told = Pauses { until: 30 * MS, pauses: vec![Pause(1, 0, 12 * MS), Pause(1, 11 * MS, 13 * MS)] };
        let mut blame = late(10 * MS, 15 * MS, 1, 1, 1);
        blame.settle(&told, 9);
        assert_eq!(blame.quantiles().max, 2000.0);
    }

    #[test]
    fn what_left_after_the_last_look_waits_for_the_next() {
        let mut blame = late(10 * MS, 15 * MS, 1, 1, 1);
        let mut known = Pauses { until: 12 * MS, pauses: vec![Pause(1, 9 * MS, 12 * MS)] };
        blame.settle(&known, 9);
        assert_eq!(blame.quantiles().count, 0, "whose it is comes with the next report");
        known.follow(Pauses { until: 20 * MS, pauses: vec![Pause(1, 12 * MS, 14 * MS)] });
        blame.settle(&known, 9);
        assert_eq!((blame.quantiles().count, blame.quantiles().max), (1, 1000.0), "both pauses explain it");
        known.follow(Pauses { until: 20 * MS + 3 * KEPT, pauses: vec![Pause(1, 21 * MS, 22 * MS)] });
        assert_eq!(known.pauses.len(), 3, "reports may be long apart");
        known.follow(Pauses { until: 20 * MS + 4 * KEPT, pauses: vec![] });
        assert_eq!(known.pauses, [], "what is due later met none of them");
    }

    #[test]
    fn packets_do_not_wait_for_a_long_division() {
        let mut blame = Blame::default();
        for packet in 0..10 {
            blame.left(packet * MS, (packet + 1) * MS, 1, || (0, 0));
        }
        let known = Pauses { until: 8 * MS, pauses: vec![] };
        blame.settle(&known, 3);
        assert_eq!(blame.quantiles().count, 3);
        blame.settle(&known, usize::MAX);
        assert_eq!(blame.quantiles().count, 8, "of the others no one knows yet");
    }

    #[test]
    fn a_little_late_is_always_the_emulators() {
        let mut blame = Blame::default();
        blame.left(0, SUSPECT - 1, 3, || unreachable!("no core is asked for"));
        blame.settle(&Pauses { until: MS, pauses: vec![Pause(0, 0, MS)] }, 9);
        assert_eq!(blame.quantiles().count, 3);
        assert!(blame.quantiles().max > 199.0);
    }
}
