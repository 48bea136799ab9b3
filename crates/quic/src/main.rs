//! `tunnelmark-quic`: a server and a client that measure QUIC on the path between them.
//!
//! Both speak the QUIC perf protocol (`perf`) over quinn. The client establishes connections, asks for bytes, and
//! prints one JSON object at its end. The server says on stderr that it listens, and prints its object when it is asked
//! to end (SIGTERM or SIGINT).
//!
//! ```text
//! client                                            server
//!   N times: connect ─ ask for 1 byte ─ close         answers
//!   bulk: connect ─ ask for endless bytes             sends; every 0.1 s: sent, lost, cwnd, rtt, CPU
//!   every 0.1 s: bytes, CPU
//! ```

mod client;
mod cpu_time;
mod perf;
mod report;
mod server;
mod transport;

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (quinn ", env!("VERSION_OF_QUINN"), ")");

/// Why a program ends early, in words.
#[derive(Debug)]
pub struct Failure(pub String);

/// Turns any error into a `Failure` that says what was being done, and every cause.
pub trait During<T> {
    /// The value, or a failure of `what`.
    fn during(self, what: &str) -> Result<T, Failure>;
}

impl<T, E: Error> During<T> for Result<T, E> {
    fn during(self, what: &str) -> Result<T, Failure> {
        self.map_err(|error| {
            let mut text = format!("{what}: {error}");
            let mut cause = error.source();
            while let Some(deeper) = cause {
                text += &format!(": {deeper}");
                cause = deeper.source();
            }
            Failure(text)
        })
    }
}

/// Measures QUIC between a server and a client.
#[derive(Parser)]
#[command(name = "tunnelmark-quic", version = VERSION)]
struct Command {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Answer every request until SIGTERM, then print what was sent.
    Server(ServerArgs),
    /// Establish connections, download over them, print what arrived.
    Client(ClientArgs),
}

/// Options of both ends.
#[derive(Args, Clone, Copy)]
pub struct Common {
    /// Receive buffer to ask of the socket, in bytes.
    #[arg(long, default_value_t = 212_992)]
    pub receive_buffer: usize,
    /// Hand several datagrams to the kernel at once (UDP GSO).
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    pub gso: bool,
}

/// Options of the server.
#[derive(Args)]
pub struct ServerArgs {
    /// Address and port to listen on.
    #[arg(long)]
    pub listen: SocketAddr,
    /// Options of both ends.
    #[command(flatten)]
    pub common: Common,
}

/// Options of the client.
#[derive(Args)]
pub struct ClientArgs {
    /// Address and port of the server.
    #[arg(long)]
    pub connect: SocketAddr,
    /// Separate connections, one after the other, whose establishment is timed.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub handshakes: u32,
    /// Connections that download at once.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,
    /// Seconds to download for.
    #[arg(long, default_value_t = 2.0, value_parser = seconds)]
    pub duration: f64,
    /// Seconds that all connections together may take to be established.
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    pub patience: f64,
    /// Options of both ends.
    #[command(flatten)]
    pub common: Common,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 86_400.0 => Ok(value),
        _ => Err("should be seconds above zero, at most a day".into()),
    }
}

fn main() -> ExitCode {
    let command = Command::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("the runtime cannot be made: {error}")),
    };
    let done = match command.role {
        Role::Server(args) => runtime.block_on(server::run(args)).map(|report| report::print(&report)),
        Role::Client(args) => {
            let done = runtime.block_on(client::run(args)).map(|report| report::print(&report));
            if let Err(Failure(why)) = &done {
                report::print(&report::Error { error: why.clone() });
            }
            done
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(why)) => failed(&why),
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("tunnelmark-quic: {why}");
    ExitCode::FAILURE
}
