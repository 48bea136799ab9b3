//! The client: times connections one after the other, then downloads over several at once, and counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use quinn::{Connection, VarInt};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::cpu_time::cpu_seconds;
use crate::report::{Arrived, Client, Datagrams, Handshake, Link, PROGRAM};
use crate::transport::{NAME, Place};
use crate::{ClientArgs, During, Failure, perf};

const STEP: Duration = Duration::from_millis(100);

/// How long a path may be silent while what is under way after the download arrives; by then the figures are taken.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// For how many times as long that may take in all.
const PATIENCE: u64 = 6;

/// How long the end of a connection may take to be sent.
const GOODBYE: Duration = Duration::from_millis(100);

/// A connection with its endpoint: each has a socket of its own, as flows of different programs have.
struct Line {
    place: Place,
    connection: Connection,
}

/// Measure all that `args` ask for.
pub async fn run(args: ClientArgs) -> Result<Client, Failure> {
    let (mut lines, mut handshakes) = (vec![], vec![]);
    let deadline = Instant::now() + Duration::from_secs_f64(args.patience);
    for number in 1..=args.handshakes {
        let timed = timeout_at(deadline, timed(&args)).await;
        let late = || Failure(format!("connection {number} was not answered within {} s of the start", args.patience));
        let (line, handshake) = timed.map_err(|_| late())??;
        line.connection.close(VarInt::from_u32(0), b"timed");
        lines.push(line);
        handshakes.push(handshake);
    }
    let first_bulk = lines.len();
    for number in 1..=args.connections {
        let connected = timeout_at(deadline, connect(&args)).await;
        let late =
            || Failure(format!("bulk connection {number} was not there within {} s of the start", args.patience));
        lines.push(connected.map_err(|_| late())??);
    }
    let (arrived, read) = download(&lines[first_bulk..], Duration::from_secs_f64(args.duration)).await?;
    let (mut udp_sent, mut udp_received) = (Datagrams::default(), Datagrams::default());
    let mut connections = vec![];
    for (number, line) in lines.iter().enumerate() {
        let stats = line.connection.stats();
        udp_sent += stats.udp_tx.into();
        udp_received += stats.udp_rx.into();
        if number >= first_bulk {
            connections.push(Link::new(&stats, Some(read[number - first_bulk])));
        }
    }
    let settings = lines[first_bulk].place.settings();
    Ok(Client { program: PROGRAM, settings, handshakes, arrived, connections, udp_sent, udp_received })
}

async fn connect(args: &ClientArgs) -> Result<Line, Failure> {
    let place = Place::client(args.connect, args.common)?;
    let connecting = place.endpoint.connect(args.connect, NAME).during("no connection can be begun")?;
    let connection = connecting.await.during("the connection was not established")?;
    Ok(Line { place, connection })
}

/// A connection, and how long it took until it was established and until the first byte of an answer.
async fn timed(args: &ClientArgs) -> Result<(Line, Handshake), Failure> {
    let place = Place::client(args.connect, args.common)?;
    let began = Instant::now();
    let connecting = place.endpoint.connect(args.connect, NAME).during("no connection can be begun")?;
    let connection = connecting.await.during("the connection was not established")?;
    let connected = began.elapsed();
    let mut answer = perf::ask(&connection, 1).await?;
    perf::first_byte(&mut answer).await?;
    let first_byte = began.elapsed();
    let handshake =
        Handshake { connect_ms: connected.as_secs_f64() * 1e3, first_byte_ms: first_byte.as_secs_f64() * 1e3 };
    Ok((Line { place, connection }, handshake))
}

/// Download over all lines at once; what had arrived at each step, and what was read from each line in the end.
async fn download(lines: &[Line], duration: Duration) -> Result<(Vec<Arrived>, Vec<u64>), Failure> {
    let counters: Vec<_> = lines.iter().map(|_| Arc::new(AtomicU64::new(0))).collect();
    let mut readers = JoinSet::new();
    let began = Instant::now();
    for (line, counter) in lines.iter().zip(&counters) {
        let (stream, counter) = (perf::ask(&line.connection, perf::ENDLESS).await?, counter.clone());
        readers.spawn(async move { perf::count(stream, &counter).await });
    }
    let look = || {
        let time = began.elapsed().as_secs_f64();
        // In this order nothing is counted as read that is not counted as received, however late the second count is.
        let bytes = counters.iter().map(|counter| counter.load(Relaxed)).sum();
        let mut udp_received = Datagrams::default();
        lines.iter().for_each(|line| udp_received += line.connection.stats().udp_rx.into());
        Arrived { time, bytes, udp_received, cpu: cpu_seconds() }
    };
    let mut arrived = vec![look()];
    let mut next = began;
    while next < began + duration {
        next += STEP;
        tokio::select! {
            biased;
            () = sleep_until(next) => arrived.push(look()),
            Some(ended) = readers.join_next() => ended.during("a reader")??,
        }
    }
    readers.shutdown().await; // drops the streams, which tells the server to stop
    let read = counters.iter().map(|counter| counter.load(Relaxed)).collect();
    let mut endings = JoinSet::new();
    for line in lines {
        endings.spawn(emptied(line.connection.clone()));
    }
    while let Some(ended) = endings.join_next().await {
        ended.during("an ending")??;
    }
    for line in lines {
        line.connection.close(VarInt::from_u32(0), b"done");
        _ = timeout(GOODBYE, line.place.endpoint.wait_idle()).await;
    }
    Ok((arrived, read))
}

/// Wait until what was under way has arrived: a byte that is asked for now comes behind it.
///
/// On a path that loses much it may take long until the byte is there, and whatever arrives meanwhile shows that the path answers.
async fn emptied(connection: Connection) -> Result<(), Failure> {
    let last = async { perf::first_byte(&mut perf::ask(&connection, 1).await?).await };
    tokio::pin!(last);
    for _ in 0..PATIENCE {
        let before = connection.stats().udp_rx.datagrams;
        if let Ok(ended) = timeout(AFTERWARDS, &mut last).await {
            return ended;
        }
        if connection.stats().udp_rx.datagrams == before {
            return Err(Failure(format!(
                "the path no longer answered within {} s of the download",
                AFTERWARDS.as_secs()
            )));
        }
    }
    let all = PATIENCE * AFTERWARDS.as_secs();
    Err(Failure(format!("what was under way at the end of the download had not arrived {all} s later")))
}
