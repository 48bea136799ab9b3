//! Packets that were received together, whatever device they came from.

use crate::virtio_net::HEADER;

/// Packets in one batch.
pub const BATCH: usize = 32;
/// Room for a header and the longest frame.
const ROOM: usize = HEADER + (68 << 10);

/// Packets received together.
pub struct Batch {
    pub buffers: Vec<Box<[u8]>>,
    pub lens: [usize; BATCH],
}

impl Batch {
    pub fn new() -> Self {
        Self { buffers: (0..BATCH).map(|_| vec![0; ROOM].into()).collect(), lens: [0; BATCH] }
    }

    /// Packet `number` as it crossed the port: its header and its frame.
    pub fn raw(&self, number: usize) -> &[u8] {
        &self.buffers[number][..self.lens[number]]
    }
}
