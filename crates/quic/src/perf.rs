//! The QUIC perf protocol (draft-banks-quic-performance): what a client asks on a stream, and how a server answers.
//!
//! The first 8 bytes of a bidirectional stream are a big-endian number: how many bytes the server shall send back on
//! the stream. What the client sends after these 8 bytes is thrown away.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use quinn::{Connection, RecvStream, SendStream, VarInt};

use crate::{During, Failure};

/// The name by which both ends agree on the protocol.
pub const ALPN: &[u8] = b"perf";

/// More than any run transfers: the client ends it by closing.
pub const ENDLESS: u64 = 1 << 60;

const CHUNK: usize = 64 * 1024;
static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// Ask for that many bytes; the stream on which they arrive.
pub async fn ask(connection: &Connection, bytes: u64) -> Result<RecvStream, Failure> {
    let (mut send, receive) = connection.open_bi().await.during("a stream cannot be opened")?;
    send.write_all(&bytes.to_be_bytes()).await.during("a request cannot be sent")?;
    send.finish().during("a request cannot be ended")?;
    Ok(receive)
}

/// Wait for something on a stream.
pub async fn first_byte(stream: &mut RecvStream) -> Result<(), Failure> {
    match stream.read_chunk(CHUNK, true).await.during("no answer arrives")? {
        Some(_) => Ok(()),
        None => Err(Failure("the server ended its answer before the first byte".into())),
    }
}

/// Count what arrives on a stream, in order, until it ends: which an endless answer only does when something is wrong.
pub async fn count(mut stream: RecvStream, bytes: &AtomicU64) -> Result<(), Failure> {
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await.during("the download broke off")? {
        bytes.fetch_add(chunk.bytes.len() as u64, Relaxed);
    }
    Err(Failure("the server ended its answer early".into()))
}

/// What a client asked for on a stream, once all that it sent has been read. None: the stream is not a request.
pub async fn asked(stream: &mut RecvStream) -> Option<u64> {
    let mut head = [0; 8];
    stream.read_exact(&mut head).await.ok()?;
    while let Ok(Some(_)) = stream.read_chunk(CHUNK, true).await {}
    Some(u64::from_be_bytes(head))
}

/// Send that many bytes, or fewer if the client has had enough.
pub async fn answer(stream: &mut SendStream, mut bytes: u64) {
    while bytes > 0 {
        let chunk = Bytes::from_static(&ZEROS[..bytes.min(CHUNK as u64) as usize]);
        let length = chunk.len() as u64;
        if stream.write_chunk(chunk).await.is_err() {
            _ = stream.reset(VarInt::from_u32(0)); // so that nothing of it is sent again
            return;
        }
        bytes -= length;
    }
    _ = stream.finish();
}
