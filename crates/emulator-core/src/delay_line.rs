//! Holds the packets that are under way with their times of departure, and gives them out in the order of time.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Items in the order of their time, equals in the order of insertion.
///
/// As netem's tfifo: an item not earlier than the last one is appended to a ring, which is all that happens
/// while order is kept; the others go to a heap.
#[derive(Debug)]
pub(crate) struct DelayLine<T> {
    ring: VecDeque<Timed<T>>,
    heap: BinaryHeap<Timed<T>>,
    inserted: u64,
}

#[derive(Debug)]
struct Timed<T> {
    at: u64,
    number: u64,
    item: T,
}

impl<T> DelayLine<T> {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { ring: VecDeque::with_capacity(capacity), heap: BinaryHeap::with_capacity(capacity / 4), inserted: 0 }
    }

    pub(crate) fn push(&mut self, at: u64, item: T) {
        let timed = Timed { at, number: self.inserted, item };
        self.inserted += 1;
        if self.ring.back().is_none_or(|last| at >= last.at) {
            self.ring.push_back(timed);
        } else {
            self.heap.push(timed);
        }
    }

    pub(crate) fn first(&self) -> Option<u64> {
        match (self.ring.front(), self.heap.peek()) {
            (Some(a), Some(b)) => Some(a.at.min(b.at)),
            (Some(a), None) => Some(a.at),
            (None, Some(b)) => Some(b.at),
            (None, None) => None,
        }
    }

    /// The latest time of all that wait.
    pub(crate) fn last(&self) -> Option<u64> {
        // The heap holds only what was earlier than the ring's end, and is taken before it.
        self.ring.back().map(|last| last.at)
    }

    pub(crate) fn len(&self) -> usize {
        self.ring.len() + self.heap.len()
    }

    /// The first item, if it is due.
    #[inline]
    pub(crate) fn pop(&mut self, now: u64) -> Option<(u64, T)> {
        let from_heap = match (self.ring.front(), self.heap.peek()) {
            (Some(a), Some(b)) => (b.at, b.number) < (a.at, a.number),
            (None, Some(_)) => true,
            _ => false,
        };
        if from_heap {
            if self.heap.peek()?.at > now {
                return None;
            }
            self.heap.pop().map(|timed| (timed.at, timed.item))
        } else {
            if self.ring.front()?.at > now {
                return None;
            }
            self.ring.pop_front().map(|timed| (timed.at, timed.item))
        }
    }
}

// The heap gives out its greatest: order by time and insertion, reversed.
impl<T> Ord for Timed<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<T> PartialOrd for Timed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Timed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Timed<T> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_a_stable_sort_by_time(times in prop::collection::vec(0u64..50, 0..200)) {
            let mut line = DelayLine::with_capacity(0);
            for (number, &at) in times.iter().enumerate() {
                line.push(at, number);
            }
            prop_assert_eq!(line.last(), times.iter().max().copied());
            let mut expected: Vec<(u64, usize)> = times.iter().copied().zip(0..).collect();
            expected.sort();
            let found: Vec<(u64, usize)> = std::iter::from_fn(|| line.pop(u64::MAX)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
