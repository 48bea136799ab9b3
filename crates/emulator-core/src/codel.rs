//! Implements CoDel's control law (RFC 8289, section 5): which packets to drop as they leave the queue.

use crate::config::Codel as Settings;

/// CoDel never drops the last packet's worth of bytes: below the longest packet that was seen, and this, the queue is not standing.
const MAX_PACKET: u64 = 1514;

/// State of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Codel {
    target: u64,
    interval: u64,
    first_above: u64,
    drop_next: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
    longest: u64,
}

impl Codel {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            target: settings.target_us * 1000,
            interval: settings.interval_us * 1000,
            first_above: 0,
            drop_next: 0,
            count: 0,
            last_count: 0,
            dropping: false,
            longest: MAX_PACKET,
        }
    }

    /// A packet of this many bytes has come.
    pub(crate) fn saw(&mut self, len: u64) {
        self.longest = self.longest.max(len);
    }

    /// The queue ran empty.
    pub(crate) fn empty(&mut self) {
        self.first_above = 0;
        self.dropping = false;
    }

    /// Whether the packet that leaves at `now` after `sojourn` is dropped; `left` bytes stay behind it.
    ///
    /// The RFC's loops drop and look at the next packet; the caller does the same by asking again.
    pub(crate) fn drops(&mut self, now: u64, sojourn: u64, left: u64) -> bool {
        let ok_to_drop = self.above(now, sojourn, left);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
                return false;
            }
            if now < self.drop_next {
                return false;
            }
            self.count += 1;
            self.drop_next = self.law(self.drop_next);
            return true;
        }
        if !ok_to_drop {
            return false;
        }
        self.dropping = true;
        // Begin near the rate that controlled the queue before, if that was recently.
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_sub(self.drop_next) < 16 * self.interval;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.law(now);
        self.last_count = self.count;
        true
    }

    fn above(&mut self, now: u64, sojourn: u64, left: u64) -> bool {
        if sojourn < self.target || left <= self.longest {
            self.first_above = 0;
            return false;
        }
        if self.first_above == 0 {
            self.first_above = now + self.interval;
            return false;
        }
        now >= self.first_above
    }

    fn law(&self, from: u64) -> u64 {
        from + (self.interval as f64 / f64::from(self.count).sqrt()) as u64
    }
}
