//! Carries one direction of a link: packets are offered with the time, and taken when they are due.

use std::collections::VecDeque;

use crate::config::{Config, Invalid, Model};
use crate::decide::{Decider, Decision};
use crate::delay_line::DelayLine;
use crate::phase::{Phase, ready};
use crate::philox::Source;
use crate::schedule::Timeline;
use crate::stats::{Stats, Sums};

mod netem;
mod queue;
#[cfg(test)]
mod tests;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It leaves.
    Sent,
    /// It leaves with this bit inverted, counted from the front of the frame.
    Corrupted(u64),
    /// CoDel dropped it after it had been accepted; the caller may let it go.
    Dropped,
}

/// A packet that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When it should leave.
    pub at: u64,
    /// What the caller gave with it.
    pub handle: u64,
    /// What becomes of it.
    pub outcome: Outcome,
}

/// A packet inside the link.
#[derive(Clone, Copy, Debug)]
struct Packet {
    handle: u64,
    len: u32,
    weight: u32,
    corrupt: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    handle: u64,
    outcome: Outcome,
}

/// One direction of a link.
///
/// Times must not go backwards from call to call. The sequence of departures depends only on the times and
/// lengths offered, not on how often or how late [`take`](Self::take) is called.
#[derive(Debug)]
pub struct Link {
    model: Model,
    limit: usize,
    phases: Box<[Phase]>,
    timeline: Timeline,
    zero: u64,
    number: u64,
    decider: Decider,
    queue: queue::Queue,
    line: DelayLine<InFlight>,
    /// Nanoseconds that each packet takes after everything else. It is constant, so it keeps the order.
    propagation: u64,
    /// Packets that netem's queue no longer counts, with the time at which they leave.
    ready: VecDeque<Departure>,
    /// Departure of the last packet that others must not overtake.
    order: u64,
    stats: Stats,
    delays: Sums,
    loss_before: bool,
}

/// netem's default `limit`.
const NETEM_LIMIT: u32 = 1000;

impl Link {
    /// The direction at `place` of a configuration; its zero is time 0.
    ///
    /// # Panics
    /// If the configuration has no such direction.
    pub fn new(config: &Config, place: usize) -> Result<Self, Invalid> {
        config.check()?;
        let direction = &config.directions[place];
        let source = Source::new(config.seed, config.link, place as u16);
        let (phases, machines) = ready(direction, &source);
        Ok(Self {
            model: direction.model,
            limit: direction.limit_packets.unwrap_or(NETEM_LIMIT) as usize,
            phases: phases.into(),
            timeline: Timeline::new(direction),
            zero: 0,
            number: 0,
            decider: Decider::new(source, direction.model, machines),
            queue: queue::Queue::with_capacity(1024),
            line: DelayLine::with_capacity(1024),
            propagation: (direction.propagation_us.unwrap_or(0.0) * 1000.0).round() as u64,
            ready: VecDeque::with_capacity(64),
            order: 0,
            stats: Stats::default(),
            delays: Sums::default(),
            loss_before: false,
        })
    }

    /// Starts the time of schedule, blackouts, traces and processes in time again at `now`. Packets and counts stay.
    pub fn restart(&mut self, now: u64) {
        self.advance(now);
        self.zero = now;
        self.timeline.restart();
        self.decider.machines.rates.iter_mut().for_each(|(rate, _)| rate.restart());
    }

    /// Whether the wire packets of a super-packet may fare differently, now or later. If not, a super-packet
    /// may be offered as one with the same result.
    pub fn splits_super_packets(&self) -> bool {
        self.phases.iter().any(Phase::parts)
    }

    /// Whether packets leave as they come.
    pub fn is_transparent(&self) -> bool {
        let through = |phase: &Phase| !phase.parts() && phase.delay_ns == 0 && !phase.down;
        self.phases.iter().all(through) && !self.timeline.has_blackouts() && self.propagation == 0
    }

    /// Offers a packet of `len` bytes and says how often its handle will come out of [`take`](Self::take):
    /// 0 if it is dropped, 2 if it is duplicated. `weight` is how many wire packets it counts as.
    pub fn offer(&mut self, now: u64, len: u32, weight: u32, handle: u64) -> u32 {
        self.advance(now);
        let n = self.number;
        self.number += 1;
        self.stats.offered += u64::from(weight);
        self.stats.offered_bytes += u64::from(len);
        let packet = Packet { handle, len, weight, corrupt: None };
        match self.model {
            Model::Stated => self.offer_stated(now, n, packet),
            Model::Netem => self.offer_netem(now, n, packet, false),
        }
    }

    fn offer_stated(&mut self, now: u64, n: u64, mut packet: Packet) -> u32 {
        let phase = &self.phases[self.timeline.phase];
        let decision = self.decider.decide(phase, n, now.saturating_sub(self.zero));
        let dark = self.is_blacked_out(now);
        self.count_loss(decision.lost, packet.weight);
        if decision.lost {
            return 0;
        }
        if dark {
            self.stats.dropped.blackout += u64::from(packet.weight);
            return 0;
        }
        packet.corrupt = decision.corrupt;
        let mut accepted = u32::from(self.enqueue(now, packet, decision));
        if decision.duplicated {
            self.stats.duplicated += u64::from(packet.weight);
            packet.corrupt = None;
            accepted += u32::from(self.enqueue(now, packet, decision));
        }
        accepted
    }

    fn count_loss(&mut self, lost: bool, weight: u32) {
        if lost {
            self.stats.dropped.loss += u64::from(weight);
            self.stats.loss_runs += u64::from(!self.loss_before);
        }
        self.loss_before = lost;
    }

    fn is_blacked_out(&self, now: u64) -> bool {
        self.phases[self.timeline.phase].down || self.timeline.is_blacked_out(now - self.zero)
    }

    /// Through serialisation at `now`: the delay, and departure.
    fn delay(&mut self, now: u64, packet: Packet, decision: Decision) {
        let phase = &self.phases[self.timeline.phase];
        let keep_order = phase.keep_order;
        let delay_ns = decision.delay_ns + self.decider.wander(phase, now.saturating_sub(self.zero));
        let mut at = now;
        if decision.reordered {
            self.stats.reordered += u64::from(packet.weight);
        } else {
            if delay_ns < 0 {
                self.stats.clipped += u64::from(packet.weight);
            }
            at += delay_ns.max(0) as u64;
            if keep_order {
                if at < self.order {
                    self.stats.held += u64::from(packet.weight);
                    at = self.order;
                }
                self.order = at;
            }
        }
        self.delays.add(at - now);
        self.leave(at, packet);
    }

    fn leave(&mut self, at: u64, packet: Packet) {
        self.stats.sent += u64::from(packet.weight);
        self.stats.sent_bytes += u64::from(packet.len);
        let skip = self.phases[self.timeline.phase].corruption.map_or(0, |(_, skip)| skip);
        let outcome = match packet.corrupt {
            Some(random) if packet.len > skip => {
                self.stats.corrupted += 1;
                let bits = u64::from(packet.len - skip) * 8;
                Outcome::Corrupted(u64::from(skip) * 8 + ((u128::from(random) * u128::from(bits)) >> 32) as u64)
            }
            _ => Outcome::Sent,
        };
        self.line.push(at, InFlight { handle: packet.handle, outcome });
    }

    /// When [`take`](Self::take) may next have something, if ever. It may come back empty-handed.
    pub fn next_departure(&self) -> Option<u64> {
        if let Some(first) = self.ready.front() {
            return Some(first.at);
        }
        let queued =
            self.queue.next_departure(self.order).map(|at| at.min(self.zero.saturating_add(self.timeline.next)));
        let leaving = self.line.first().map(|at| at.saturating_add(self.propagation));
        match (leaving, queued) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The next packet that is due.
    pub fn take(&mut self, now: u64) -> Option<Departure> {
        self.advance(now);
        if let Some(first) = self.ready.front() {
            return if first.at <= now { self.ready.pop_front() } else { None };
        }
        let (at, leaving) = self.line.pop(now.checked_sub(self.propagation)?)?;
        Some(self.departure(at, leaving))
    }

    /// The departure of a packet that is through everything but the propagation at `at`.
    fn departure(&self, at: u64, leaving: InFlight) -> Departure {
        Departure { at: at.saturating_add(self.propagation), handle: leaving.handle, outcome: leaving.outcome }
    }

    /// Bytes that wait for serialisation.
    pub fn queued_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Packets inside, in transmission and delayed ones included.
    pub fn in_flight(&self) -> usize {
        self.queue.len() + self.line.len() + self.ready.len()
    }

    /// What was realised so far.
    pub fn stats(&self) -> Stats {
        Stats {
            delay_us: self.delays.moments(),
            queued_us: self.queue.waits.moments(),
            queue_peak_bytes: self.queue.peak,
            decisions: self.decider.log,
            ..self.stats.clone()
        }
    }
}
