//! `tunnelmark-probe`: measures a path with UDP datagrams that leave on a schedule. One subcommand, one module.
//!
//! Every result is JSON on standard output, an object a line. Times are nanoseconds of CLOCK_MONOTONIC, which is one
//! clock for all nodes of a lab on one kernel.

mod batch;
mod clock;
mod control;
mod latency;
mod mtu;
mod pace;
mod packet;
mod print;
mod prober;
mod probes;
mod rate_search;
mod receive_stats;
mod search;
mod serve;
mod socket;
mod stream;
mod trial;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "tunnelmark-probe", version, about = "Measures a path with UDP datagrams that leave on a schedule")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The other end of `search` and `latency`: receives, counts, and sends back; stays until it is ended
    Serve(serve::Options),
    /// Searches the highest rate within a bound of loss
    Search(search::Options),
    /// One-way delays both ways, idle and under load
    Latency(latency::Options),
    /// A steady stream to one peer, and what arrives from it, whatever happens to the path
    Stream(stream::Options),
    /// The largest packet that passes whole, and what happens to a larger one
    Mtu(mtu::Options),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(options) => serve::run(&options),
        Command::Search(options) => print::told(search::run(&options)),
        Command::Latency(options) => print::told(latency::run(&options)),
        Command::Stream(options) => stream::run(&options),
        Command::Mtu(options) => mtu::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("tunnelmark-probe: {why}");
            ExitCode::FAILURE
        }
    }
}
