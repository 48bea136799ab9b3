//! Holds packets between their departure from the link and the port: neighbours are joined again, and packets
//! are sent together.

use emulator_core::{Departure, Outcome};

use crate::batch::BATCH;
use crate::direction::{Handle, Lane};
use crate::pool::Pool;
use crate::port::{Outgoing, Port};
use crate::sys;
use crate::virtio_net::HEADS;

/// Neighbours of one super-packet that are due at the same time, and so leave at the same moment.
#[derive(Clone, Copy, Debug)]
struct Run {
    slot: u32,
    port: u8,
    first: u32,
    last: u32,
    at: u64,
}

struct Waiting {
    packet: Outgoing,
    at: u64,
    count: u32,
}

/// Bytes with which the box is full: 0.5 ms at 1 Gbit/s. The call that sends them does the receiver's work in the kernel,
/// too, and the other direction waits meanwhile: 32 super-packets of 64 KiB kept its ACKs for 13 ms.
const FULL: usize = 64 << 10;

/// Packets that are due, by port.
pub struct Outbox {
    ports: Vec<Vec<Waiting>>,
    bytes: usize,
    run: Option<Run>,
    join_ns: u64,
}

impl Outbox {
    pub fn new(ports: usize, join_ns: u64) -> Self {
        let ports = (0..ports).map(|_| Vec::with_capacity(BATCH + 2)).collect();
        Self { ports, bytes: 0, run: None, join_ns }
    }

    /// Takes a departure; true if the box is full and must be flushed.
    pub fn add(&mut self, departure: Departure, pool: &mut Pool) -> bool {
        let Handle { slot, port, part } = Handle::unpack(departure.handle);
        let at = departure.at;
        match (departure.outcome, part) {
            (Outcome::Sent, Some(part)) => {
                if let Some(run) = &mut self.run {
                    let neighbour = (run.slot, run.port, run.last + 1) == (slot, port, part);
                    if neighbour && at - run.at <= self.join_ns {
                        run.last = part;
                        return false;
                    }
                }
                self.end_run(pool);
                self.run = Some(Run { slot, port, first: part, last: part, at });
            }
            (Outcome::Sent, None) => {
                self.end_run(pool);
                let held = pool.get(slot);
                let count = held.parts.map_or(1, |parts| parts.count);
                let packet = Outgoing::whole(held.vnet, slot, held.frame().len());
                self.push(port, packet, at, count);
            }
            (Outcome::Corrupted(bit), _) => {
                self.end_run(pool);
                self.corrupt(slot, port, part, bit, at, pool);
            }
            (Outcome::Dropped, _) => pool.release(slot, 1),
        }
        self.ports[usize::from(port)].len() >= BATCH || self.bytes >= FULL
    }

    fn push(&mut self, port: u8, packet: Outgoing, at: u64, count: u32) {
        self.bytes += packet.body.len();
        self.ports[usize::from(port)].push(Waiting { packet, at, count });
    }

    /// What follows is not a neighbour.
    pub fn end_run(&mut self, pool: &mut Pool) {
        let Some(run) = self.run.take() else { return };
        let packet = part(run.slot, run.first, run.last, pool);
        let count = run.last - run.first + 1;
        self.push(run.port, packet, run.at, count);
    }

    /// One bit of a packet is inverted. Its checksum is made good first, so that the receiver can see it.
    ///
    /// Of a super-packet that is one unit the first wire packet is hit, as by netem, which parts it then.
    fn corrupt(&mut self, slot: u32, port: u8, number: Option<u32>, bit: u64, at: u64, pool: &mut Pool) {
        let (parts, mut vnet) = (pool.get(slot).parts, pool.get(slot).vnet);
        let mut frame = match (parts, number) {
            (Some(_), number) => {
                let number = number.unwrap_or(0);
                let packet = part(slot, number, number, pool);
                vnet = crate::virtio_net::Vnet::parse(&packet.vnet);
                packet.places(pool)[1..].concat()
            }
            (None, _) => pool.get(slot).frame().to_vec(),
        };
        vnet.complete_checksum(&mut frame);
        let bit = bit % (frame.len() as u64 * 8);
        frame[(bit / 8) as usize] ^= 1 << (bit % 8);
        if let Some(copy) = pool.hold(vnet, &frame, None) {
            pool.get_mut(copy).users = 1;
            self.push(port, Outgoing::whole(vnet, copy, frame.len()), at, 1);
        }
        match parts {
            Some(parts) if number.is_none() && parts.count > 1 => {
                let packet = Outgoing { users: 1, ..part(slot, 1, parts.count - 1, pool) };
                self.push(port, packet, at, parts.count - 1);
            }
            _ => pool.release(slot, 1),
        }
    }

    /// Sends everything, all of it of this lane.
    pub fn flush(&mut self, ports: &mut [Port], lane: &mut Lane, pool: &mut Pool) {
        self.bytes = 0;
        for (waiting, port) in self.ports.iter_mut().zip(ports) {
            if waiting.is_empty() {
                continue;
            }
            for chunk in waiting.chunks(BATCH) {
                let mut places = [[&[][..]; 3]; BATCH];
                for (places, waiting) in places.iter_mut().zip(chunk) {
                    *places = waiting.packet.places(pool);
                }
                // A packet leaves at the beginning of its share of the call: what follows, the kernel's work for
                // the receiver included, holds up the next one.
                let begin = sys::now();
                port.send(&places[..chunk.len()]);
                let each = (sys::now() - begin) / chunk.len() as u64;
                for (number, waiting) in (0..).zip(chunk) {
                    lane.left(waiting.at, begin + number * each, waiting.count);
                }
            }
            for waiting in waiting.drain(..) {
                pool.release(waiting.packet.slot, waiting.packet.users);
            }
        }
    }
}

/// Parts of a held super-packet as a packet of their own.
fn part(slot: u32, first: u32, last: u32, pool: &Pool) -> Outgoing {
    let held = pool.get(slot);
    let mut packet = Outgoing::whole(held.vnet, slot, held.frame().len());
    packet.users = last - first + 1;
    let Some(parts) = held.parts else { return packet };
    if (first, last) != (0, parts.count - 1) {
        let mut head = [0; HEADS];
        packet.vnet = parts.head(&held.vnet, held.frame(), first, last, &mut head).bytes();
        packet.head = head;
        packet.head_len = parts.heads as usize;
        packet.body = parts.body(first, last);
    }
    packet
}
