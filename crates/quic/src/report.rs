//! What the programs print: one JSON object each. Times are in seconds, sizes in bytes, unless a name says otherwise.

use std::ops::AddAssign;

use quinn::ConnectionStats;
use serde::Serialize;

/// Which program this was, in which version, on which library.
#[derive(Serialize)]
pub struct Program {
    version: &'static str,
    quinn: &'static str,
    quinn_proto: &'static str,
    rustls: &'static str,
}

/// This program.
pub const PROGRAM: Program = Program {
    version: env!("CARGO_PKG_VERSION"),
    quinn: env!("VERSION_OF_QUINN"),
    quinn_proto: env!("VERSION_OF_QUINN_PROTO"),
    rustls: env!("VERSION_OF_RUSTLS"),
};

/// What an endpoint was set to, and what became of it. Buffers are as the kernel reports them: twice what was asked.
#[derive(Serialize)]
pub struct Settings {
    /// Whether UDP GSO was wanted.
    pub gso_asked: bool,
    /// Whether it was in use until the end: quinn stops using it when the kernel refuses.
    pub gso: bool,
    /// The socket's receive buffer.
    pub receive_buffer: usize,
    /// The socket's send buffer.
    pub send_buffer: usize,
    /// Flow control: what may be under way on a stream.
    pub flow_window: u32,
}

/// UDP datagrams that QUIC handed to the kernel or got from it; `bytes` is their payload, `calls` in how many calls.
#[derive(Serialize, Default, Clone, Copy)]
pub struct Datagrams {
    /// Bytes of UDP payload.
    pub bytes: u64,
    /// How many there were.
    pub datagrams: u64,
    /// In how many calls; for what was received, quinn counts QUIC packets here.
    pub calls: u64,
}

impl From<quinn::UdpStats> for Datagrams {
    fn from(stats: quinn::UdpStats) -> Self {
        Self { bytes: stats.bytes, datagrams: stats.datagrams, calls: stats.ios }
    }
}

impl AddAssign for Datagrams {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.datagrams += other.datagrams;
        self.calls += other.calls;
    }
}

/// One connection at its end.
#[derive(Serialize)]
pub struct Link {
    /// Bytes of the download that were read, where this end counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    /// The largest UDP payload that path MTU discovery found.
    pub mtu: u16,
    /// QUIC packets sent.
    pub sent: u64,
    /// QUIC packets that were declared lost.
    pub lost: u64,
    /// Probes of path MTU discovery among those sent, and how many of them were lost (which `lost` leaves out).
    pub mtu_probes: [u64; 2],
    /// How often congestion control had to react.
    pub congestion_events: u64,
    /// STREAM frames received.
    pub stream_frames: u64,
    /// What was sent in datagrams.
    pub udp_sent: Datagrams,
    /// What was received in datagrams.
    pub udp_received: Datagrams,
}

impl Link {
    /// A connection as quinn knows it.
    pub fn new(stats: &ConnectionStats, read: Option<u64>) -> Self {
        let path = &stats.path;
        Self {
            read,
            mtu: path.current_mtu,
            sent: path.sent_packets,
            lost: path.lost_packets,
            mtu_probes: [path.sent_plpmtud_probes, path.lost_plpmtud_probes],
            congestion_events: path.congestion_events,
            stream_frames: stats.frame_rx.stream,
            udp_sent: stats.udp_tx.into(),
            udp_received: stats.udp_rx.into(),
        }
    }
}

/// One connection that was established to be timed, in milliseconds from its first step.
#[derive(Serialize)]
pub struct Handshake {
    /// Until it was established.
    pub connect_ms: f64,
    /// Until the first byte of an answer.
    pub first_byte_ms: f64,
}

/// What had arrived at a client by a moment of its download.
#[derive(Serialize)]
pub struct Arrived {
    /// Seconds since the download began.
    pub time: f64,
    /// Bytes that were read, in order.
    pub bytes: u64,
    /// The datagrams that they came in, and those that are not read yet.
    pub udp_received: Datagrams,
    /// CPU seconds of the process.
    pub cpu: f64,
}

/// What a server had done by a moment of its first bulk answer.
#[derive(Serialize)]
pub struct Left {
    /// Seconds since the first bulk request arrived.
    pub time: f64,
    /// QUIC packets sent on all bulk connections.
    pub sent: u64,
    /// Of them declared lost.
    pub lost: u64,
    /// Mean congestion window of a connection.
    pub cwnd: f64,
    /// Mean smoothed round-trip time, in milliseconds.
    pub rtt_ms: f64,
    /// What was handed to the kernel.
    pub udp_sent: Datagrams,
    /// CPU seconds of the process.
    pub cpu: f64,
}

/// A client's whole report. `udp_*` count all its connections.
#[derive(Serialize)]
pub struct Client {
    /// Which program.
    pub program: Program,
    /// How it was set up.
    pub settings: Settings,
    /// The connections that were timed.
    pub handshakes: Vec<Handshake>,
    /// The download, every 0.1 s.
    pub arrived: Vec<Arrived>,
    /// The connections of the download.
    pub connections: Vec<Link>,
    /// What was sent in all.
    pub udp_sent: Datagrams,
    /// What was received in all.
    pub udp_received: Datagrams,
}

/// A server's whole report. `udp_*` count all its connections.
#[derive(Serialize)]
pub struct Server {
    /// Which program.
    pub program: Program,
    /// How it was set up.
    pub settings: Settings,
    /// What each bulk connection's congestion control is.
    pub congestion_control: Vec<String>,
    /// The bulk answers, every 0.1 s.
    pub left: Vec<Left>,
    /// The bulk connections.
    pub connections: Vec<Link>,
    /// What was sent in all.
    pub udp_sent: Datagrams,
    /// What was received in all.
    pub udp_received: Datagrams,
}

/// Printed by a client instead of a report.
#[derive(Serialize)]
pub struct Error {
    /// Why there is none.
    pub error: String,
}

/// Print a report on one line.
pub fn print(report: &impl Serialize) {
    println!("{}", serde_json::to_string(report).expect("a report has no keys but names"));
}
