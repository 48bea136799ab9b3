//! `tunnelmark-cores`: keeps the machine's cores awake, and reports when they paused. One subcommand, one module.
//!
//! ```text
//! tunnelmark-cores awake CORE FD    an endless loop of idle class on a core; writes its own time into the memory FD
//! tunnelmark-cores watch [PROCS]    a clock of the highest priority on each core; `report` on standard input asks it
//! tunnelmark-cores yardstick SECONDS CORE OTHER
//!                                   what this machine takes for the work of which VPNs consist: JSON
//! ```

mod awake;
mod packets;
mod sys;
mod watch;
mod yardstick;

use std::process::ExitCode;

const USAGE: &str = "usage: tunnelmark-cores awake CORE FD
       tunnelmark-cores watch [PROCS]
       tunnelmark-cores yardstick SECONDS CORE OTHER";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["awake", core, fd] => match (core.parse(), fd.parse()) {
            (Ok(core), Ok(fd)) => awake::keep(core, fd),
            _ => return wrong(&format!("{core} and {fd} are not the numbers of a core and of an open file")),
        },
        ["yardstick", seconds, core, other] => match (seconds.parse(), core.parse(), other.parse()) {
            (Ok(seconds), Ok(core), Ok(other)) => yardstick::measure(seconds, core, other),
            _ => return wrong(&format!("{seconds} {core} {other} are not seconds and the numbers of two cores")),
        },
        ["watch"] => watch::watch(None),
        ["watch", procs] => watch::watch(Some(procs)),
        _ => return wrong("these arguments are not understood"),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("tunnelmark-cores: {why}");
            ExitCode::from(1)
        }
    }
}

fn wrong(why: &str) -> ExitCode {
    eprintln!("tunnelmark-cores: {why}\n{USAGE}");
    ExitCode::from(2)
}
