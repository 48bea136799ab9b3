//! Implements netem's order of decisions: `netem_enqueue` of Linux 6.18, on virtual time.

use super::{Link, Packet};

impl Link {
    /// Returns how many copies are inside afterwards.
    ///
    /// Not here: `ecn` marking, slots, and the limit's signal to a local sender, which a link cannot give.
    pub(super) fn offer_netem(&mut self, now: u64, n: u64, mut packet: Packet, copy: bool) -> u32 {
        self.release(now);
        let phase = &self.phases[self.timeline.phase];
        // A duplicate re-enters at the root with duplication switched off.
        let duplicated = !copy && self.decider.duplicated(phase, n);
        let lost = self.decider.lost(phase, n, copy, now.saturating_sub(self.zero));
        let weight = u64::from(packet.weight);
        self.count_loss(lost, packet.weight);
        self.stats.duplicated += if duplicated { weight } else { 0 };
        // Both at once cancel out: one passes.
        let copies = 1 + u32::from(duplicated) - u32::from(lost);
        if copies == 0 {
            return 0;
        }
        let phase = &self.phases[self.timeline.phase];
        packet.corrupt = self.decider.corrupt(phase, n, copy);
        if self.is_blacked_out(now) {
            self.stats.dropped.blackout += weight * u64::from(copies);
            return 0;
        }
        if self.line.len() >= self.limit {
            self.stats.dropped.queue += weight * u64::from(copies);
            return 0;
        }
        let mut inside = 1;
        if copies == 2 {
            // The duplicate goes first, and meets its own loss, limit and delay.
            inside += self.offer_netem(now, n, Packet { corrupt: None, ..packet }, true);
        }
        let phase = &self.phases[self.timeline.phase];
        let (reordered, delay) = self.decider.delay(phase, n, copy);
        let at = if reordered {
            self.stats.reordered += weight;
            now
        } else {
            self.netem_time(now, delay, packet)
        };
        self.delays.add(at - now);
        self.leave(at, packet);
        inside
    }

    /// `time_to_send`; with a rate, delay counts from now but the packet starts after the last one in the queue.
    fn netem_time(&mut self, now: u64, delay: i64, packet: Packet) -> u64 {
        let due = |from: u64, delay: i64| from.saturating_add_signed(delay).max(now);
        let phase = &self.phases[self.timeline.phase];
        let Some(place) = phase.rate else {
            self.stats.clipped += if delay < 0 { u64::from(packet.weight) } else { 0 };
            return due(now, delay);
        };
        let time = self.decider.machines.rates[place].0.netem_time(packet.len) as i64;
        match self.line.last() {
            Some(last) => due(last, (delay - (last - now) as i64).max(0) + time),
            None => due(now, delay + time),
        }
    }

    /// What is due has left netem's queue, whether the caller has taken it or not.
    pub(super) fn release(&mut self, now: u64) {
        while let Some((at, leaving)) = self.line.pop(now) {
            let departure = self.departure(at, leaving);
            self.ready.push_back(departure);
        }
    }
}
