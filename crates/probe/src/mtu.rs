//! The subcommand `mtu`: the largest packet that reaches the other end whole, and what happens to one that is larger.
//!
//! Packets carry the don't-fragment bit (over IPv6 only the sender may split them). The kernel is set not to use what
//! it knows of the path (`IP_PMTUDISC_PROBE`): only the interface's own MTU still stops packets here.

use std::net::{SocketAddr, UdpSocket};

use clap::Args;
use serde::Serialize;

use crate::clock::{self, MILLISECOND};
use crate::packet::{self, Header};
use crate::print;
use crate::prober::{LARGEST, Outcome, Prober, STREAM, Try};

/// After this time no limit of messages a second still holds one back (Linux: icmp_ratelimit; tincd: 3 a second).
const REPRIEVE: u64 = 1200 * MILLISECOND;

#[derive(Args)]
#[command(group(clap::ArgGroup::new("end").required(true).args(["to", "listen"])))]
pub struct Options {
    /// Where the other end listens
    #[arg(long)]
    to: Option<SocketAddr>,
    /// Be the other end: answer on this address, until ended
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// How often a size is tried before it counts as too large
    #[arg(long, default_value_t = 6)]
    tries: u32,
}

/// What was found. Sizes are bytes of IP packet, its header included.
#[derive(Serialize)]
struct Found {
    mtu: usize,
    /// The largest size that this end's own interface takes.
    interface: usize,
    /// What happened to packets of one byte more.
    above: Outcome,
    said: usize,
    rtt_us: u64,
    tries: Vec<Try>,
}

pub fn run(options: &Options) -> Result<(), String> {
    match (options.to, options.listen) {
        (Some(to), _) => search(to, options.tries),
        (_, Some(at)) => answer(at),
        _ => Err("either --to or --listen is needed".into()),
    }
}

/// Says of every datagram of ours how large it was, in one that is small enough for any path.
fn answer(at: SocketAddr) -> Result<(), String> {
    let socket = UdpSocket::bind(at).map_err(|error| format!("{at}: {error}"))?;
    let mut buffer = vec![0; LARGEST + 1];
    let mut small = [0; packet::LEN];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        if let Some(header) = Header::read(&buffer[..length])
            && header.stream == STREAM
        {
            Header { intended: length as u64, ..header }.write(&mut small);
            // A lost answer is what the tries are for.
            let _ = socket.send_to(&small, from);
        }
    }
}

fn search(to: SocketAddr, tries: u32) -> Result<(), String> {
    let mut prober = Prober::new(to, tries).map_err(|error| error.to_string())?;
    let least = prober.headers + packet::LEN;
    if prober.attempt(least) != Outcome::Passed {
        return Err(format!("{to} did not answer the smallest packet, of {least} bytes"));
    }
    let interface = prober.interface(least);
    let (mut passes, mut fails) = (least, interface + 1);
    let (mut above, mut said) = (Outcome::Local, interface);
    let mut candidate = interface;
    loop {
        while fails - passes > 1 {
            let outcome = prober.attempt(candidate);
            if outcome == Outcome::Passed {
                passes = candidate;
            } else {
                fails = candidate;
                (above, said) = (outcome, prober.said);
            }
            candidate = next(passes, fails, said);
        }
        if above != Outcome::Silent {
            break;
        }
        // A node says "too big" a few times a second at most: silence right after other tries proves nothing.
        clock::sleep_until(clock::now() + REPRIEVE);
        (above, said) = (prober.attempt(fails), prober.said);
        if above != Outcome::Passed {
            break;
        }
        // The silence was chance, such as a burst of losses: what is larger has not been tried for certain.
        (passes, fails, above) = (fails, interface + 1, Outcome::Local);
        (said, candidate) = (interface, interface);
    }
    print::line(&Found { mtu: passes, interface, above, said, rtt_us: prober.rtt / 1000, tries: prober.tried })
}

/// The size to try between one that passes and one that fails: what a refusal named, one more than that, or the middle.
fn next(passes: usize, fails: usize, said: usize) -> usize {
    [said, said + 1].into_iter().find(|&size| passes < size && size < fails).unwrap_or(usize::midpoint(passes, fails))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_that_a_refusal_named_comes_next_and_then_one_more() {
        assert_eq!(next(60, 1500, 1400), 1400);
        assert_eq!(next(1400, 1500, 1400), 1401);
        assert_eq!(next(60, 1500, 0), 780);
        assert_eq!(next(1400, 1402, 1400), 1401);
        assert_eq!(next(60, 1500, 1500), 780);
    }

    /// A search against a path that passes up to `mtu` and names `said` when it refuses.
    fn steps(mtu: usize, said: usize) -> (usize, u32) {
        let (mut passes, mut fails, mut candidate, mut count) = (60, 9001, 9000, 0);
        while fails - passes > 1 {
            let good = candidate <= mtu;
            if good {
                passes = candidate
            } else {
                fails = candidate
            }
            candidate = next(passes, fails, said);
            count += 1;
        }
        (passes, count)
    }

    #[test]
    fn a_search_ends_at_the_path_s_own_size() {
        for mtu in [60, 61, 575, 1280, 1419, 1420, 8999, 9000] {
            assert_eq!(steps(mtu, 0).0, mtu);
            assert_eq!(steps(mtu, mtu).0, mtu);
        }
    }

    #[test]
    fn a_path_that_names_its_size_is_found_in_few_steps() {
        assert_eq!(steps(1400, 1400), (1400, 3));
    }

    #[test]
    fn the_other_end_says_how_much_arrived_over_loopback() {
        let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        std::thread::spawn(move || answer(at));
        let mut prober = Prober::new(at, 20).unwrap();
        assert_eq!(prober.attempt(1000), Outcome::Passed);
        assert_eq!(prober.interface(60), LARGEST);
    }
}
