//! Carries one direction with I/O: the link, which frames it takes apart, and how late packets left.

use emulator_core::Link;
use emulator_core::config::{Config, Invalid, Unit};

use crate::blame::{Blame, Pauses};
use crate::histogram::Histogram;
use crate::pool::Pool;
use crate::report;
use crate::sys;
use crate::virtio_net::{Parts, Vnet};

/// Which packet of which frame, and where it goes: what the link carries as handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    pub slot: u32,
    pub port: u8,
    /// None: the whole frame.
    pub part: Option<u32>,
}

impl Handle {
    fn pack(self) -> u64 {
        let part = self.part.map_or(0, |part| u64::from(part) + 1);
        u64::from(self.slot) << 32 | u64::from(self.port) << 24 | part
    }

    pub fn unpack(bits: u64) -> Self {
        let part = (bits & 0xff_ffff) as u32;
        Self { slot: (bits >> 32) as u32, port: (bits >> 24) as u8, part: part.checked_sub(1) }
    }
}

/// One direction.
pub struct Lane {
    name: String,
    pub link: Link,
    /// Packets pass untouched, and need not be held.
    pub transparent: bool,
    parts: bool,
    unit: Unit,
    passed: Passed,
    memory: u64,
    oversize: u64,
    late: Histogram,
    late_last: Histogram,
    blame: Blame,
}

/// What went by without the link.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    units: u64,
    packets: u64,
    bytes: u64,
}

impl Lane {
    pub fn new(config: &Config, place: usize) -> Result<Self, Invalid> {
        let link = Link::new(config, place)?;
        let direction = &config.directions[place];
        Ok(Self {
            name: direction.name.clone(),
            transparent: link.is_transparent(),
            parts: link.splits_super_packets() && direction.unit == Unit::Wire,
            unit: direction.unit,
            link,
            passed: Passed::default(),
            memory: 0,
            oversize: 0,
            late: Histogram::default(),
            late_last: Histogram::default(),
            blame: Blame::default(),
        })
    }

    /// Counts a frame that passes untouched.
    #[inline]
    pub fn pass(&mut self, vnet: &Vnet, frame: &[u8]) {
        let (packets, bytes) = match if vnet.gso_type == 0 { None } else { Parts::of(vnet, frame) } {
            Some(parts) => (parts.count, parts.wire_len()),
            None => (1, frame.len() as u32),
        };
        self.passed.units += 1;
        self.passed.packets += u64::from(packets);
        self.passed.bytes += u64::from(bytes);
    }

    /// Offers a frame to the link, packet by packet where they may fare differently.
    pub fn offer(&mut self, now: u64, port: u8, vnet: Vnet, frame: &[u8], pool: &mut Pool) {
        let parts = if vnet.gso_type == 0 { None } else { Parts::of(&vnet, frame) };
        self.passed.units += 1;
        if parts.is_none() && vnet.gso_type != 0 && self.unit == Unit::Wire {
            // A super-packet of a kind that cannot be parted: the decision would be for all of it.
            self.oversize += 1;
            return;
        }
        let packets = parts.map_or(1, |parts| parts.count);
        let Some(slot) = pool.hold(vnet, frame, parts) else {
            self.memory += u64::from(packets);
            return;
        };
        let mut users = 0;
        match parts.filter(|_| self.parts) {
            Some(parts) => {
                for part in 0..parts.count {
                    let handle = Handle { slot, port, part: Some(part) }.pack();
                    users += self.link.offer(now, parts.len(part), 1, handle);
                }
            }
            None => {
                let len = parts.map_or(frame.len() as u32, |parts| parts.wire_len());
                users += self.link.offer(now, len, packets, Handle { slot, port, part: None }.pack());
            }
        }
        if users == 0 {
            pool.drop_slot(slot);
        } else {
            pool.get_mut(slot).users = users;
        }
    }

    /// Packets that should have left at `due` left at `left`.
    #[inline]
    pub fn left(&mut self, due: u64, left: u64, packets: u32) {
        self.late.add(left - due, u64::from(packets));
        self.late_last.add(left - due, u64::from(packets));
        self.blame.left(due, left, packets, sys::cores);
    }

    /// Starts the link's time again, and what is said of lateness: what was late before says nothing of what follows.
    pub fn restart(&mut self, now: u64) {
        self.link.restart(now);
        (self.late, self.late_last, self.blame) = Default::default();
    }

    /// Takes the pauses of the machine into account for so many late departures at the most.
    #[inline]
    pub fn settle(&mut self, known: &Pauses, most: usize) {
        self.blame.settle(known, most);
    }

    /// What happened so far; begins the next interval.
    pub fn report(&mut self) -> report::Direction {
        let realised = self.link.stats();
        let dropped = report::Dropped { by_stage: realised.dropped, memory: self.memory, oversize: self.oversize };
        let late_last = self.late_last.quantiles();
        self.late_last.clear();
        let passed = if self.transparent { self.passed } else { Passed::default() };
        report::Direction {
            name: self.name.clone(),
            units: self.passed.units,
            packets: realised.offered + passed.packets + self.memory + self.oversize,
            bytes: realised.offered_bytes + passed.bytes,
            sent_packets: realised.sent + passed.packets,
            sent_bytes: realised.sent_bytes + passed.bytes,
            dropped,
            queue_bytes: self.link.queued_bytes(),
            inside: self.link.in_flight() as u64,
            lateness_us: self.late.quantiles(),
            lateness_last_us: late_last,
            own_lateness_us: self.blame.quantiles(),
            excused_lateness_us: self.blame.excused(),
            realised,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_survive_packing() {
        for handle in [
            Handle { slot: 0, port: 0, part: None },
            Handle { slot: u32::MAX, port: 63, part: Some(65_535) },
            Handle { slot: 7, port: 1, part: Some(0) },
        ] {
            assert_eq!(Handle::unpack(handle.pack()), handle);
        }
    }
}
