//! What a link decides about given packets, for comparing it with another link that met the same ones.
//!
//! Standard input is one JSON object: `config` as in docs/emulator.md (its first direction is taken), `bytes` (the length
//! of every packet), `arrived_ns` (when each is offered, ascending) and `seeds` (how many are tried, from the
//! configuration's own upwards). Standard output is a JSON line for each seed: `number` and `left_ns` of what
//! leaves, in the order of leaving, and `damaged`, the places in that list where a bit is inverted.

use std::io::{self, BufWriter, Write};

use emulator_core::{Departure, Link, Outcome, config::Config};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    config: Config,
    bytes: u32,
    arrived_ns: Vec<u64>,
    seeds: u64,
}

#[derive(Default, Serialize)]
struct Found {
    seed: u64,
    number: Vec<u64>,
    left_ns: Vec<u64>,
    damaged: Vec<usize>,
}

impl Found {
    fn add(&mut self, departure: Departure) {
        if matches!(departure.outcome, Outcome::Corrupted(_)) {
            self.damaged.push(self.number.len());
        }
        if departure.outcome != Outcome::Dropped {
            self.number.push(departure.handle);
            self.left_ns.push(departure.at);
        }
    }
}

fn decide(asked: &Asked, seed: u64) -> Result<Found, Box<dyn std::error::Error>> {
    let config = Config { seed, ..asked.config.clone() };
    let mut link = Link::new(&config, 0).map_err(|invalid| format!("{invalid:?}"))?;
    let mut found = Found { seed, ..Found::default() };
    for (number, &at) in (0..).zip(&asked.arrived_ns) {
        link.offer(at, asked.bytes, 1, number);
        while let Some(departure) = link.take(at) {
            found.add(departure);
        }
    }
    while let Some(at) = link.next_departure() {
        while let Some(departure) = link.take(at) {
            found.add(departure);
        }
    }
    Ok(found)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked: Asked = serde_json::from_reader(io::stdin().lock())?;
    let mut out = BufWriter::new(io::stdout().lock());
    for seed in (asked.config.seed..).take(asked.seeds as usize) {
        serde_json::to_writer(&mut out, &decide(&asked, seed)?)?;
        writeln!(out)?;
    }
    Ok(())
}
