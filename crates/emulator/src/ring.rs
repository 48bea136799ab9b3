//! One ring that this program shares with the kernel (AF_XDP). One side puts entries in and moves the producer on. The
//! other takes them out and moves the consumer on. Layout: `Documentation/networking/af_xdp.rst`.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Memory that is mapped for as long as this lives.
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

impl Mapping {
    /// A part of what a descriptor offers, or with none zeroed memory of our own, in place from the beginning.
    pub fn new(of: Option<BorrowedFd<'_>>, offset: i64, len: usize) -> Result<Self> {
        let kind = if of.is_some() { libc::MAP_SHARED } else { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS };
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, kind | libc::MAP_POPULATE);
        let fd = of.map_or(-1, |fd| fd.as_raw_fd());
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, fd, offset) };
        if base == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        Ok(Self { base: NonNull::new(base.cast()).ok_or(Error::other("mapped at 0"))?, len })
    }

    /// Where it begins; page-aligned.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// A pointer to a `T` at an offset, which must lie inside.
    fn at<T>(&self, offset: u64, count: usize) -> NonNull<T> {
        let (offset, size) = (offset as usize, size_of::<T>() * count);
        assert!(offset + size <= self.len && offset.is_multiple_of(align_of::<T>()));
        // SAFETY: inside the mapping, as just seen.
        unsafe { self.base.add(offset) }.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by us, with this length; who points into it owns it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// A ring of which this side is either the producer (`room`, `put`, `publish`) or the consumer (`take`, `release`).
pub struct Ring<T> {
    _mapping: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    entries: NonNull<T>,
    size: u32,
    /// How far we are; how far the other side was when we last looked.
    ours: u32,
    theirs: u32,
}

impl<T: Copy> Ring<T> {
    /// The ring that lies in a mapping; `size` is a power of two.
    pub fn new(mapping: Mapping, offsets: &libc::xdp_ring_offset, size: u32) -> Self {
        assert!(size.is_power_of_two());
        Self {
            producer: mapping.at(offsets.producer, 1),
            consumer: mapping.at(offsets.consumer, 1),
            entries: mapping.at(offsets.desc, size as usize),
            _mapping: mapping,
            size,
            ours: 0,
            theirs: 0,
        }
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: inside our mapping; both sides use it as an atomic.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    fn entry(&self, number: u32) -> NonNull<T> {
        // SAFETY: the mask keeps it among the entries.
        unsafe { self.entries.add((number & (self.size - 1)) as usize) }
    }

    /// Producer: entries that the other side has not taken yet.
    pub fn pending(&self) -> u32 {
        self.ours.wrapping_sub(self.consumer().load(Ordering::Acquire))
    }

    /// Producer: adds an entry, which the other side sees once it is published. Never more than `size` at a time:
    /// that there is room is for the caller to know, who has no more entries than that.
    pub fn put(&mut self, entry: T) {
        debug_assert!(self.pending() < self.size);
        // SAFETY: the entry is ours until it is published.
        unsafe { self.entry(self.ours).write(entry) };
        self.ours = self.ours.wrapping_add(1);
    }

    /// Producer: shows the other side what was put.
    pub fn publish(&self) {
        self.producer().store(self.ours, Ordering::Release);
    }

    /// Consumer: the next entry.
    pub fn take(&mut self) -> Option<T> {
        if self.ours == self.theirs {
            self.theirs = self.producer().load(Ordering::Acquire);
            if self.ours == self.theirs {
                return None;
            }
        }
        // SAFETY: the other side has published it, and leaves it alone until it is released.
        let entry = unsafe { self.entry(self.ours).read() };
        self.ours = self.ours.wrapping_add(1);
        Some(entry)
    }

    /// Consumer: gives what was taken back.
    pub fn release(&self) {
        self.consumer().store(self.ours, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both sides of one ring, on memory without a kernel behind it.
    fn sides(start: u32) -> (Ring<u64>, Ring<u64>) {
        let offsets = libc::xdp_ring_offset { producer: 0, consumer: 64, desc: 128, flags: 72 };
        let mut producer = Ring::new(Mapping::new(None, 0, 4096).unwrap(), &offsets, 4);
        let mut consumer = Ring::new(Mapping::new(None, 0, 4096).unwrap(), &offsets, 4);
        (consumer.producer, consumer.consumer, consumer.entries) =
            (producer.producer, producer.consumer, producer.entries);
        (producer.ours, consumer.ours, consumer.theirs) = (start, start, start);
        producer.publish();
        consumer.release();
        (producer, consumer)
    }

    #[test]
    fn entries_come_out_in_order_also_where_the_numbers_wrap() {
        for start in [0, u32::MAX - 2] {
            let (mut producer, mut consumer) = sides(start);
            for round in 0..5 {
                for entry in 0..3 {
                    producer.put(round * 10 + entry);
                }
                assert_eq!(consumer.take(), None, "nothing before it is published");
                producer.publish();
                let taken: Vec<u64> = std::iter::from_fn(|| consumer.take()).collect();
                assert_eq!(taken, [round * 10, round * 10 + 1, round * 10 + 2]);
                assert_eq!(producer.pending(), 3);
                consumer.release();
                assert_eq!(producer.pending(), 0);
            }
        }
    }
}
