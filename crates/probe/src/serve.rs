//! The subcommand `serve`: the other end of `search` and `latency`. Receives, counts and sends back until it is ended.
//!
//! One thread counts trials, another probes, each with a port of its own: so probes never wait behind load in a
//! socket's buffer.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;

use clap::Args;
use serde::Serialize;

use crate::batch::{Arrival, Incoming};
use crate::clock;
use crate::control::{self, Answer, Question};
use crate::packet::Header;
use crate::print;
use crate::probes;
use crate::receive_stats::ReceiveStats;
use crate::socket;

/// The port for trials; probes have the next one.
pub const PORT: u16 = 5301;

/// Where to listen.
#[derive(Args)]
pub struct Options {
    /// The address to listen on
    #[arg(long)]
    bind: IpAddr,
    /// The port for trials; probes have the next one
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Bytes of socket buffer to ask for
    #[arg(long, default_value_t = 4 << 20)]
    buffer: usize,
}

#[derive(Serialize)]
struct Ready {
    kind: &'static str,
}

/// Serves until the process is ended.
pub fn run(options: &Options) -> Result<(), String> {
    let listen = |port: u16| {
        let address = SocketAddr::new(options.bind, port);
        socket::bound(address, options.buffer).map_err(|error| format!("cannot listen on {address}: {error}"))
    };
    let (trials, probes) = (listen(options.port)?, listen(options.port + 1)?);
    thread::spawn(move || {
        // Without probes the server must end: the client would wait for answers that never come.
        if let Err(why) = probes::serve(&probes) {
            eprintln!("tunnelmark-probe: {why}");
            std::process::exit(1);
        }
    });
    print::line(&Ready { kind: "ready" })?;
    count(&trials)
}

/// Counts the datagrams of one trial after the other, and answers questions about them.
fn count(socket: &UdpSocket) -> Result<(), String> {
    let mut incoming = Incoming::new();
    let mut current: Option<(u32, ReceiveStats, u64)> = None; // the trial, its account, what the socket had dropped before it
    loop {
        let mut asked = Vec::new();
        let mut now = 0;
        let mut each = |arrival: Arrival<'_>| {
            if now == 0 {
                now = clock::now();
            }
            match (Header::read(arrival.beginning), &mut current) {
                (Some(header), Some((trial, stats, _))) if header.stream == *trial => stats.arrived(&header, now),
                (Some(_), _) => {} // of a trial that is over
                (None, _) => asked.extend(control::question(arrival.beginning).map(|one| (one, arrival.from))),
            }
        };
        incoming.receive(socket, &mut each).map_err(|error| format!("receiving: {error}"))?;
        for ((id, question), from) in asked {
            let answer = reply(socket, &mut current, &question)?;
            let _ = socket.send_to(&control::answer(id, answer), from); // a lost answer is asked for again
        }
    }
}

fn reply(
    socket: &UdpSocket,
    current: &mut Option<(u32, ReceiveStats, u64)>,
    question: &Question,
) -> Result<Answer, String> {
    let dropped = socket::dropped(socket).map_err(|error| format!("a socket's drops: {error}"))?;
    Ok(match (question, &mut *current) {
        (Question::Hello, _) => Answer::Clock(control::clock_name()),
        (Question::Begin { trial, .. }, Some((known, ..))) if trial == known => Answer::Done,
        (Question::Begin { trial, datagrams }, _) => {
            *current = Some((*trial, ReceiveStats::new(*datagrams, clock::now()), dropped));
            Answer::Done
        }
        (Question::Count { trial }, Some((known, stats, before))) if trial == known => {
            Answer::Count(stats.count(clock::now(), dropped - *before))
        }
        (Question::Count { trial }, _) => Answer::No(format!("there is no trial {trial}")),
        (Question::Probe(_) | Question::Progress { .. } | Question::Finish { .. }, _) => {
            Answer::No("probes have the next port".into())
        }
    })
}
