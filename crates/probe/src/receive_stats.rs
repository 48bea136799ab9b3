//! The receiver's account of one trial: which datagrams arrived, how often, in what order, and whether they queued up.

use serde::{Deserialize, Serialize};

use crate::packet::Header;

/// Equal parts of a trial by sequence number; the delays of the first and the last are compared.
const PARTS: u64 = 10;

/// The most datagrams of a trial that are distinguished; later ones count as strays.
const MOST: u64 = 1 << 28;

/// What has arrived of a trial so far.
pub struct ReceiveStats {
    datagrams: u64,
    seen: Vec<u64>,
    unique: u64,
    duplicates: u64,
    reordered: u64,
    strays: u64,
    highest: Option<u64>,
    first: u64,
    last: u64,
    quickest: [Option<i64>; PARTS as usize],
}

/// What was received, in numbers, as the receiver reports it; times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Datagrams that arrived, each counted once.
    pub unique: u64,
    /// Arrivals of what had arrived before.
    pub duplicates: u64,
    /// Arrivals after one that was sent later (RFC 4737's definition of a reordered packet).
    pub reordered: u64,
    /// From the first arrival to the last.
    pub span: u64,
    /// Since the last arrival, or since the trial began.
    pub quiet: u64,
    /// By how much the least one-way delay in the last tenth of the datagrams exceeds that in the first tenth.
    pub growth: Option<i64>,
    /// Datagrams that the receiver's socket dropped because the program was not quick enough.
    pub dropped: u64,
}

impl ReceiveStats {
    /// For a trial of that many datagrams that begins now; zero if their number is not known before.
    pub fn new(datagrams: u64, now: u64) -> ReceiveStats {
        ReceiveStats {
            datagrams,
            seen: Vec::new(),
            unique: 0,
            duplicates: 0,
            reordered: 0,
            strays: 0,
            highest: None,
            first: now,
            last: now,
            quickest: [None; PARTS as usize],
        }
    }

    /// Takes a datagram that arrived at `now` into account.
    pub fn arrived(&mut self, header: &Header, now: u64) {
        let (word, bit) = ((header.sequence / 64) as usize, 1 << (header.sequence % 64));
        if header.sequence >= MOST {
            self.strays += 1;
            return;
        }
        if word >= self.seen.len() {
            self.seen.resize((word + 1).next_power_of_two(), 0);
        }
        if self.unique + self.duplicates == 0 {
            self.first = now;
        }
        self.last = now;
        if self.seen[word] & bit != 0 {
            self.duplicates += 1;
            return;
        }
        self.seen[word] |= bit;
        self.unique += 1;
        match self.highest {
            Some(highest) if header.sequence < highest => self.reordered += 1,
            _ => self.highest = Some(header.sequence),
        }
        if header.sequence < self.datagrams {
            let quickest = &mut self.quickest[(header.sequence * PARTS / self.datagrams) as usize];
            let delay = now.wrapping_sub(header.sent) as i64;
            *quickest = Some(quickest.map_or(delay, |least| least.min(delay)));
        }
    }

    /// The account as of `now`.
    pub fn count(&self, now: u64, dropped: u64) -> Count {
        let growth = match (self.quickest[0], self.quickest[PARTS as usize - 1]) {
            (Some(first), Some(last)) => Some(last.wrapping_sub(first)),
            _ => None,
        };
        Count {
            unique: self.unique,
            duplicates: self.duplicates,
            reordered: self.reordered,
            span: self.last - self.first,
            quiet: now.saturating_sub(self.last),
            growth,
            dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(sequence: u64, sent: u64) -> Header {
        Header { stream: 1, sequence, intended: sent, sent }
    }

    #[test]
    fn each_datagram_counts_once_and_what_comes_late_is_reordered() {
        let mut stats = ReceiveStats::new(5, 0);
        for (now, sequence) in [0, 2, 1, 2, 4].into_iter().enumerate() {
            stats.arrived(&header(sequence, 0), 100 + now as u64);
        }
        let count = stats.count(200, 3);
        assert_eq!((count.unique, count.duplicates, count.reordered), (4, 1, 1));
        assert_eq!((count.span, count.quiet, count.dropped), (4, 96, 3));
    }

    #[test]
    fn a_queue_that_grows_is_seen_in_the_least_delays_and_a_single_late_one_is_not() {
        let mut growing = ReceiveStats::new(100, 0);
        let mut steady = ReceiveStats::new(100, 0);
        for sequence in 0..100 {
            let sent = sequence * 1000;
            growing.arrived(&header(sequence, sent), sent + 500 + sequence * 10);
            steady.arrived(&header(sequence, sent), sent + if sequence == 95 { 90_000 } else { 500 });
        }
        assert_eq!(growing.count(0, 0).growth, Some(900));
        assert_eq!(steady.count(0, 0).growth, Some(0));
    }

    #[test]
    fn there_is_no_growth_without_a_first_and_a_last_part() {
        let mut stats = ReceiveStats::new(100, 0);
        stats.arrived(&header(3, 0), 10);
        assert_eq!(stats.count(20, 0).growth, None);
    }

    #[test]
    fn a_wild_sequence_number_takes_no_memory() {
        let mut stats = ReceiveStats::new(1, 0);
        stats.arrived(&header(u64::MAX, 0), 10);
        assert_eq!(stats.count(20, 0).unique, 0);
    }
}
