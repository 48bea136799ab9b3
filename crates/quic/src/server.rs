//! The server: answers every request, and samples its bulk connections every 0.1 s while one of them is served.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use quinn::{Connection, Incoming};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::cpu_time::cpu_seconds;
use crate::report::{Datagrams, Left, Link, PROGRAM, Server};
use crate::transport::{Place, congestion_control};
use crate::{During, Failure, ServerArgs, perf};

const STEP: Duration = Duration::from_millis(100);

/// From how many bytes on a request is bulk.
const BULK: u64 = 1 << 20;

/// All that the tasks of the server share.
#[derive(Default)]
struct Hall {
    all: Mutex<Vec<Connection>>,
    bulk: Mutex<Vec<Connection>>,
    left: Mutex<Vec<Left>>,
    serving: AtomicUsize, // bulk answers that have not ended
}

/// Answer until a signal to end arrives.
pub async fn run(args: ServerArgs) -> Result<Server, Failure> {
    let place = Place::server(args.listen, args.common)?;
    let mut terminated = signal(SignalKind::terminate()).during("signals")?;
    let mut interrupted = signal(SignalKind::interrupt()).during("signals")?;
    let hall = Arc::new(Hall::default());
    eprintln!("listening on {}", place.endpoint.local_addr().during("the socket's address")?);
    loop {
        tokio::select! {
            biased;
            _ = terminated.recv() => break,
            _ = interrupted.recv() => break,
            incoming = place.endpoint.accept() => match incoming {
                Some(incoming) => drop(tokio::spawn(serve(incoming, hall.clone()))),
                None => break,
            },
        }
    }
    let (mut udp_sent, mut udp_received) = (Datagrams::default(), Datagrams::default());
    for connection in locked(&hall.all).iter() {
        let stats = connection.stats();
        udp_sent += stats.udp_tx.into();
        udp_received += stats.udp_rx.into();
    }
    let bulk = locked(&hall.bulk);
    Ok(Server {
        program: PROGRAM,
        settings: place.settings(),
        congestion_control: bulk.iter().map(congestion_control).collect(),
        left: std::mem::take(&mut locked(&hall.left)),
        connections: bulk.iter().map(|connection| Link::new(&connection.stats(), None)).collect(),
        udp_sent,
        udp_received,
    })
}

/// Answer one client until its connection ends.
async fn serve(incoming: Incoming, hall: Arc<Hall>) {
    let Ok(connection) = incoming.await else { return };
    locked(&hall.all).push(connection.clone());
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let (hall, connection) = (hall.clone(), connection.clone());
        tokio::spawn(async move {
            let Some(bytes) = perf::asked(&mut receive).await else { return };
            if bytes < BULK {
                return perf::answer(&mut send, bytes).await;
            }
            locked(&hall.bulk).push(connection);
            if hall.serving.fetch_add(1, Relaxed) == 0 && locked(&hall.left).is_empty() {
                eprintln!("serving a download");
                tokio::spawn(sample(hall.clone()));
            }
            perf::answer(&mut send, bytes).await;
            hall.serving.fetch_sub(1, Relaxed);
        });
    }
}

/// Look at the bulk connections at every step until none is served.
async fn sample(hall: Arc<Hall>) {
    let began = Instant::now();
    let mut next = began;
    loop {
        let look = look(&locked(&hall.bulk), began);
        locked(&hall.left).push(look);
        if hall.serving.load(Relaxed) == 0 {
            return;
        }
        next += STEP;
        sleep_until(next).await;
    }
}

fn look(bulk: &[Connection], began: Instant) -> Left {
    let mut look = Left {
        time: began.elapsed().as_secs_f64(),
        sent: 0,
        lost: 0,
        cwnd: 0.0,
        rtt_ms: 0.0,
        udp_sent: Datagrams::default(),
        cpu: cpu_seconds(),
    };
    for stats in bulk.iter().map(Connection::stats) {
        look.sent += stats.path.sent_packets;
        look.lost += stats.path.lost_packets;
        look.cwnd += stats.path.cwnd as f64 / bulk.len() as f64;
        look.rtt_ms += stats.path.rtt.as_secs_f64() * 1e3 / bulk.len() as f64;
        look.udp_sent += stats.udp_tx.into();
    }
    look
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().expect("no task panics while it holds this")
}
