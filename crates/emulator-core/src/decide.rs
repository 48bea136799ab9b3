//! Takes the random decisions on packets, and logs them.
//!
//! In the stated model all decisions on packet n are taken when it is offered, whatever becomes of it in queues. So the
//! sequence of decisions does not depend on time. Jitter and bursts in time depend on time alone. In netem's model
//! decisions are taken in netem's order, where no delay is drawn for a packet that a full queue drops.

use crate::config::Model;
use crate::phase::{Machines, Phase};
use crate::philox::{Purpose, Source};

/// What is decided on a packet of the stated model.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Decision {
    pub(crate) lost: bool,
    pub(crate) duplicated: bool,
    /// A random number that says which bit is inverted.
    pub(crate) corrupt: Option<u32>,
    pub(crate) reordered: bool,
    /// Jitter in time is added when the delay begins.
    pub(crate) delay_ns: i64,
}

/// Takes the decisions of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Decider {
    source: Source,
    model: Model,
    pub(crate) machines: Machines,
    /// Packets delayed since one was reordered.
    gap: u32,
    /// Everything decided so far, as one number: equal sequences have equal numbers.
    pub(crate) log: u64,
}

impl Decider {
    pub(crate) fn new(source: Source, model: Model, machines: Machines) -> Self {
        Self { source, model, machines, gap: 0, log: 0 }
    }

    /// All decisions on packet `n` that enters at `since` nanoseconds after the link's zero, for the stated model.
    #[inline]
    pub(crate) fn decide(&mut self, phase: &Phase, n: u64, since: u64) -> Decision {
        debug_assert_eq!(self.model, Model::Stated);
        let (reordered, delay_ns) = self.delay(phase, n, false);
        Decision {
            lost: self.lost(phase, n, false, since),
            duplicated: self.duplicated(phase, n),
            corrupt: self.corrupt(phase, n, false),
            reordered,
            delay_ns,
        }
    }

    #[inline]
    pub(crate) fn duplicated(&mut self, phase: &Phase, n: u64) -> bool {
        let Some(place) = phase.duplication else { return false };
        let words = self.source.draw(Purpose::Duplication, n, false);
        let strikes = self.machines.chances[place].fires(words[0]);
        self.note(Purpose::Duplication, u64::from(strikes));
        strikes
    }

    #[inline]
    pub(crate) fn lost(&mut self, phase: &Phase, n: u64, copy: bool, since: u64) -> bool {
        let Some(place) = phase.loss else { return false };
        let words = self.source.draw(Purpose::Loss, n, copy);
        let lost = self.machines.losses[place].loses(n, words, since);
        self.note(Purpose::Loss, u64::from(lost));
        lost
    }

    #[inline]
    pub(crate) fn corrupt(&mut self, phase: &Phase, n: u64, copy: bool) -> Option<u32> {
        let (place, _) = phase.corruption?;
        let words = self.source.draw(Purpose::Corruption, n, copy);
        let strikes = self.machines.chances[place].fires(words[0]);
        self.note(Purpose::Corruption, if strikes { u64::from(words[1]) << 1 | 1 } else { 0 });
        strikes.then_some(words[1])
    }

    /// Whether the packet skips the delay, else its delay.
    #[inline]
    pub(crate) fn delay(&mut self, phase: &Phase, n: u64, copy: bool) -> (bool, i64) {
        let mut reordered = false;
        if let Some((place, gap)) = phase.reordering {
            // The stated model draws for every packet, so that its chain steps once a packet; netem does
            // not draw inside a gap.
            let turn = self.gap + 1 >= gap;
            if turn || self.model == Model::Stated {
                let words = self.source.draw(Purpose::Reordering, n, copy);
                let strikes = self.fires_reordering(place, words[0]);
                reordered = turn && strikes;
            }
            self.gap = if reordered { 0 } else { self.gap.saturating_add(1) };
            self.note(Purpose::Reordering, u64::from(reordered));
        }
        if reordered && self.model == Model::Netem {
            return (true, 0);
        }
        let mut delay = phase.delay_ns;
        if let Some(place) = phase.jitter {
            let words = self.source.draw(Purpose::Jitter, n, copy);
            let offset = self.machines.jitters[place].next(words);
            self.note(Purpose::Jitter, offset as u64);
            delay += offset;
        }
        (reordered, delay)
    }

    /// What jitter in time adds to the delay at `since` nanoseconds after the link's zero.
    #[inline]
    pub(crate) fn wander(&mut self, phase: &Phase, since: u64) -> i64 {
        let Some(place) = phase.wander else { return 0 };
        let offset = self.machines.wanders[place].at(since);
        self.note(Purpose::Wander, offset as u64);
        offset
    }

    fn fires_reordering(&mut self, place: usize, random: u32) -> bool {
        match (&mut self.machines.chances[place], self.model) {
            // netem compares the other way about here: `reorder < get_crandom` delays, so 0 still strikes
            // once in 2^32.
            (crate::bernoulli::Bernoulli::Netem { probability, crandom }, Model::Netem) => {
                *probability >= crandom.next(random)
            }
            (chance, _) => chance.fires(random),
        }
    }

    /// Adds a decision to the log: a multiply-rotate hash, which only has to distinguish sequences.
    #[inline]
    fn note(&mut self, purpose: Purpose, value: u64) {
        let mixed = (self.log ^ value ^ (purpose as u64) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.log = mixed.rotate_left(29) ^ (mixed >> 32);
    }
}
