//! Holds the queue in front of the rate, and lets time pass over it.

use std::collections::VecDeque;

use super::{InFlight, Link, Outcome, Packet};
use crate::decide::Decision;
use crate::stats::Sums;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    since: u64,
    packet: Packet,
    decision: Decision,
    /// Nothing behind it can leave before it does.
    in_order: bool,
    /// Its delay is known only when it is through.
    wanders: bool,
}

/// Packets that wait for serialisation.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: u64,
    out_of_order: usize,
    /// When the packet in transmission is through.
    free_at: u64,
    pub(super) peak: u64,
    pub(super) waits: Sums,
}

impl Queue {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            waiting: VecDeque::with_capacity(capacity),
            bytes: 0,
            out_of_order: 0,
            free_at: 0,
            peak: 0,
            waits: Sums::default(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    fn push(&mut self, waiting: Waiting) {
        self.bytes += u64::from(waiting.packet.len);
        self.peak = self.peak.max(self.bytes);
        self.out_of_order += usize::from(!waiting.in_order);
        self.waiting.push_back(waiting);
    }

    fn start(&self) -> Option<u64> {
        self.waiting.front().map(|head| self.free_at.max(head.since))
    }

    fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.bytes -= u64::from(waiting.packet.len);
        self.out_of_order -= usize::from(!waiting.in_order);
        Some(waiting)
    }

    /// A time before which nothing that waits can leave. While order is kept, that is the head's start and its
    /// delay, which spares the caller waking up for each start; with jitter in time it is the departure of the last
    /// packet, `order`.
    pub(super) fn next_departure(&self, order: u64) -> Option<u64> {
        let start = self.start()?;
        let head = self.waiting.front()?;
        if self.out_of_order > 0 {
            return Some(start);
        }
        Some(if head.wanders { start.max(order) } else { start + head.decision.delay_ns.max(0) as u64 })
    }
}

impl Link {
    /// Puts a packet in front of the rate, or hands it on where there is none; false if it is dropped.
    pub(super) fn enqueue(&mut self, now: u64, packet: Packet, decision: Decision) -> bool {
        let phase = &self.phases[self.timeline.phase];
        let Some(place) = phase.rate else {
            self.delay(now, packet, decision);
            return true;
        };
        let in_order = phase.keep_order && phase.reordering.is_none();
        let waiting = Waiting { since: now, packet, decision, in_order, wanders: phase.wander.is_some() };
        if self.queue.waiting.is_empty() && self.queue.free_at <= now {
            self.transmit(now, place, waiting);
            return true;
        }
        let rate = &self.decider.machines.rates[place].0;
        let over = self.queue.bytes + u64::from(packet.len) > rate.queue_bytes
            || self.queue.waiting.len() as u64 >= rate.queue_packets;
        if over {
            self.stats.dropped.queue += u64::from(packet.weight);
            return false;
        }
        self.queue.push(waiting);
        true
    }

    /// Lets time pass: transmissions start and the schedule steps, in the order of time.
    pub(super) fn advance(&mut self, now: u64) {
        loop {
            let step = self.zero.saturating_add(self.timeline.next);
            while let Some(start) = self.queue.start().filter(|&start| start <= now && start < step) {
                self.start(start);
            }
            if step > now {
                return;
            }
            self.timeline.step();
            if self.phases[self.timeline.phase].rate.is_none() {
                self.drain(step);
            }
        }
    }

    /// The rate is gone: what waited goes on at once.
    fn drain(&mut self, now: u64) {
        while let Some(waiting) = self.queue.pop() {
            self.queue.waits.add(now - waiting.since);
            self.delay(now, waiting.packet, waiting.decision);
        }
        self.queue.free_at = self.queue.free_at.min(now);
    }

    /// The head of the queue is transmitted, or CoDel drops it.
    fn start(&mut self, start: u64) {
        let Some(place) = self.phases[self.timeline.phase].rate else { return self.drain(start) };
        let Some(head) = self.queue.pop() else { return };
        if let Some(codel) = &mut self.decider.machines.rates[place].1 {
            codel.saw(u64::from(head.packet.len));
            if codel.drops(start, start - head.since, self.queue.bytes) {
                self.stats.dropped.codel += u64::from(head.packet.weight);
                self.line.push(start, InFlight { handle: head.packet.handle, outcome: Outcome::Dropped });
                return;
            }
            if self.queue.waiting.is_empty() {
                codel.empty();
            }
        }
        self.transmit(start, place, head);
    }

    fn transmit(&mut self, start: u64, place: usize, waiting: Waiting) {
        self.queue.waits.add(start - waiting.since);
        let rate = &mut self.decider.machines.rates[place].0;
        let through = self.zero + rate.finish(start - self.zero, waiting.packet.len);
        self.queue.free_at = through;
        self.delay(through, waiting.packet, waiting.decision);
    }
}
