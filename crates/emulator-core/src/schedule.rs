//! Keeps track of time: which phase of the schedule holds, and whether the link is blacked out.

use crate::config::{Blackout, Direction};

/// The order of phases and blackouts, in nanoseconds since the link's zero.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// Start of each phase after the first, which starts at 0.
    steps: Box<[u64]>,
    repeat: Option<u64>,
    blackouts: Box<[Blackout]>,
    cycle: u64,
    /// The phase that holds.
    pub(crate) phase: usize,
    /// When the next one begins.
    pub(crate) next: u64,
}

impl Timeline {
    pub(crate) fn new(direction: &Direction) -> Self {
        let (steps, repeat) = match &direction.schedule {
            Some(schedule) => (schedule.steps.iter().map(|step| step.at_us * 1000).collect(), schedule.repeat_us),
            None => (Box::default(), None),
        };
        let mut line = Self {
            steps,
            repeat: repeat.map(|us| us * 1000),
            blackouts: direction.blackouts.clone().into(),
            cycle: 0,
            phase: 0,
            next: 0,
        };
        line.next = line.following();
        line
    }

    /// Back to zero.
    pub(crate) fn restart(&mut self) {
        (self.cycle, self.phase) = (0, 0);
        self.next = self.following();
    }

    /// The phase that begins at `next` holds from now on.
    pub(crate) fn step(&mut self) {
        if self.phase == self.steps.len() {
            self.phase = 0;
            self.cycle += 1;
        } else {
            self.phase += 1;
        }
        self.next = self.following();
    }

    fn following(&self) -> u64 {
        let start = self.cycle * self.repeat.unwrap_or(0);
        match (self.steps.get(self.phase), self.repeat) {
            (Some(step), _) => start + step,
            (None, Some(repeat)) if !self.steps.is_empty() => start + repeat,
            _ => u64::MAX,
        }
    }

    /// Whether a window without delivery is open.
    pub(crate) fn is_blacked_out(&self, now: u64) -> bool {
        self.blackouts.iter().any(|blackout| {
            let Some(since) = now.checked_sub(blackout.start_us * 1000) else { return false };
            let since = blackout.every_us.map_or(since, |every| since % (every * 1000));
            since < blackout.length_us * 1000
        })
    }

    /// Whether it can ever be dark.
    pub(crate) fn has_blackouts(&self) -> bool {
        !self.blackouts.is_empty()
    }
}
