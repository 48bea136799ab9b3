//! Stores the packets that are held, within a bound of memory.

use crate::virtio_net::{Parts, Vnet};

/// Sizes of buffers: a frame, a short super-packet, the longest one.
const SIZES: [usize; 3] = [2 << 10, 16 << 10, 68 << 10];

/// A packet that is held until its last departure.
pub struct Held {
    buffer: Box<[u8]>,
    len: usize,
    pub vnet: Vnet,
    /// None: it is one packet, or treated as one.
    pub parts: Option<Parts>,
    /// Departures that are still to come.
    pub users: u32,
}

impl Held {
    pub fn frame(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

/// Packets by slot. Buffers are allocated as they are first needed, and used again.
pub struct Pool {
    slots: Vec<Option<Held>>,
    free_slots: Vec<u32>,
    free: [Vec<Box<[u8]>>; SIZES.len()],
    allocated: usize,
    limit: usize,
}

impl Pool {
    pub fn new(limit: usize) -> Self {
        Self { slots: vec![], free_slots: vec![], free: Default::default(), allocated: 0, limit }
    }

    /// Copies a frame into a slot; none if memory is at its bound, or the frame beyond all sizes.
    pub fn hold(&mut self, vnet: Vnet, frame: &[u8], parts: Option<Parts>) -> Option<u32> {
        let class = SIZES.iter().position(|&size| frame.len() <= size)?;
        let mut buffer = match self.free[class].pop() {
            Some(buffer) => buffer,
            None => self.allocate(class)?,
        };
        buffer[..frame.len()].copy_from_slice(frame);
        let held = Held { buffer, len: frame.len(), vnet, parts, users: 0 };
        match self.free_slots.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(held);
                Some(slot)
            }
            None => {
                self.slots.push(Some(held));
                Some(self.slots.len() as u32 - 1)
            }
        }
    }

    fn allocate(&mut self, class: usize) -> Option<Box<[u8]>> {
        let size = SIZES[class];
        if self.allocated + size > self.limit {
            // What lies unused in other sizes makes room.
            let other = (0..SIZES.len()).rev().find(|&other| other != class && !self.free[other].is_empty())?;
            while self.allocated + size > self.limit {
                self.free[other].pop()?;
                self.allocated -= SIZES[other];
            }
        }
        self.allocated += size;
        Some(vec![0; size].into())
    }

    pub fn get(&self, slot: u32) -> &Held {
        self.slots[slot as usize].as_ref().expect("a departure names a held packet")
    }

    pub fn get_mut(&mut self, slot: u32) -> &mut Held {
        self.slots[slot as usize].as_mut().expect("a departure names a held packet")
    }

    /// `times` of its departures are done.
    pub fn release(&mut self, slot: u32, times: u32) {
        let held = self.get_mut(slot);
        held.users -= times;
        if held.users == 0 {
            self.drop_slot(slot);
        }
    }

    /// Lets a packet go that has no departures.
    pub fn drop_slot(&mut self, slot: u32) {
        if let Some(held) = self.slots[slot as usize].take() {
            let class = SIZES.iter().position(|&size| size == held.buffer.len()).unwrap_or(0);
            self.free[class].push(held.buffer);
            self.free_slots.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_a_bound_and_is_used_again() {
        let mut pool = Pool::new(5 << 10);
        let hold = |pool: &mut Pool, len: usize| pool.hold(Vnet::default(), &vec![7; len], None);
        let first = hold(&mut pool, 100).unwrap();
        let second = hold(&mut pool, 2048).unwrap();
        assert_eq!(hold(&mut pool, 1), None);
        assert_eq!(hold(&mut pool, 3000), None);
        pool.get_mut(first).users = 2;
        pool.release(first, 1);
        assert_eq!(pool.get(first).frame(), [7; 100]);
        pool.release(first, 1);
        assert_eq!(hold(&mut pool, 60), Some(first));
        assert_eq!(pool.get(second).frame().len(), 2048);
        assert_eq!(hold(&mut pool, 70 << 10), None);
    }
}
