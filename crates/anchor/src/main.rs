//! `tunnelmark-anchor FILE`: joins the mesh that the file describes, in the foreground, until it is ended.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::ExitCode;

use anchor::config::Config;
use anchor::crypt::epoch;
use anchor::forward::{Peers, Way, receive_buffer};
use anchor::tun;

const USAGE: &str = "usage: tunnelmark-anchor FILE
       tunnelmark-anchor --version";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--version"] => {
            println!("tunnelmark-anchor {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        [file] if !file.starts_with('-') => match run(file) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("tunnelmark-anchor: {why}");
                ExitCode::from(1)
            }
        },
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(file: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|why| format!("{file}: {why}"))?;
    let config = Config::parse(&text).map_err(|why| format!("{file}: {why}"))?;
    let peers = Peers::new(&config, epoch()?)?;
    let socket = UdpSocket::bind(config.listen).map_err(|why| format!("{}: {why}", config.listen))?;
    socket.set_nonblocking(true).map_err(|why| format!("the socket: {why}"))?;
    if let Some(bytes) = config.receive_buffer {
        receive_buffer(&socket, bytes).map_err(|why| format!("a receive buffer of {bytes} bytes: {why}"))?;
    }
    let tun = tun::open(&config.interface).map_err(|why| format!("the TUN device {}: {why}", config.interface))?;
    Way::new(tun.as_raw_fd(), socket, peers).carry().map_err(|why| why.to_string())
}
