//! The subcommand `search`: the highest rate within bounds of loss, at several sizes, against a `serve`.

use std::net::{IpAddr, SocketAddr};

use clap::Args;
use serde::Serialize;

use crate::packet;
use crate::print;
use crate::rate_search::{self, Found, Limit, Limits, Path, RateSearch};
use crate::serve;
use crate::socket;
use crate::trial::{Trial, Trials};

/// Seconds of each trial of the ascent, which finds about what the path carries.
const ASCENT: f64 = 0.1;

/// The share of the guess at which the path's own loss is looked for.
const LIGHT: f64 = 0.1;

/// Datagrams that are enough to measure that loss.
const ENOUGH: f64 = 500.0;

/// The most seconds that they are sent for.
const LONGEST: f64 = 2.0;

/// What to search.
#[derive(Args)]
pub struct Options {
    /// The server's address
    #[arg(long)]
    to: IpAddr,
    /// The server's port for trials
    #[arg(long, default_value_t = serve::PORT)]
    port: u16,
    /// Bytes of socket buffer to ask for
    #[arg(long, default_value_t = 4 << 20)]
    buffer: usize,
    /// Payloads in bytes, or `full` for what fits the path's MTU
    #[arg(long, value_delimiter = ',', default_value = "64,512,1280,full")]
    sizes: Vec<Size>,
    /// Bounds of loss in per cent
    #[arg(long, value_delimiter = ',', default_value = "0,0.1")]
    loss: Vec<f64>,
    /// Seconds of a trial
    #[arg(long, default_value_t = 0.3)]
    trial: f64,
    /// Seconds of a confirming trial
    #[arg(long, default_value_t = 1.0)]
    confirm: f64,
    /// The search ends when failing and passing rates are this near, in per cent
    #[arg(long, default_value_t = 1.0)]
    resolution: f64,
}

/// A payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// In bytes.
    Bytes(usize),
    /// As much as fits the path's MTU.
    Full,
}

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        if text == "full" {
            return Ok(Size::Full);
        }
        match text.parse() {
            Ok(bytes) if (packet::LEN..=65507).contains(&bytes) => Ok(Size::Bytes(bytes)),
            _ => Err(format!("should be `full` or from {} to 65507 bytes", packet::LEN)),
        }
    }
}

impl Size {
    /// In bytes, with the server of `trials`.
    pub fn bytes(self, trials: &Trials) -> Result<usize, String> {
        match self {
            Size::Bytes(bytes) => Ok(bytes),
            Size::Full if (packet::LEN..=65507).contains(&trials.full) => Ok(trials.full),
            Size::Full => Err(format!("an MTU of {} B fits no datagram of ours", trials.mtu)),
        }
    }

    fn name(self) -> String {
        match self {
            Size::Bytes(bytes) => bytes.to_string(),
            Size::Full => "full".into(),
        }
    }
}

#[derive(Serialize)]
struct Began {
    kind: &'static str,
    mtu: usize,
    full: usize,
}

#[derive(Serialize)]
struct Tried<'a> {
    kind: &'static str,
    #[serde(flatten)]
    trial: &'a Trial,
}

#[derive(Serialize)]
struct Ended<'a> {
    kind: &'static str,
    name: String,
    size: usize,
    loss: f64,
    offered_max: f64,
    split: Option<f64>,
    limit: Option<Limit>,
    failed: Option<f64>,
    confirmed: Option<&'a Trial>,
}

#[derive(Serialize)]
struct Over {
    kind: &'static str,
}

/// Searches, and prints every trial and every result.
pub fn run(options: &Options) -> Result<(), String> {
    for (what, value) in
        [("--trial", options.trial), ("--confirm", options.confirm), ("--resolution", options.resolution)]
    {
        if value.is_nan() || value <= 0.0 {
            return Err(format!("{what} should be above zero"));
        }
    }
    let mut trials = Trials::with(SocketAddr::new(options.to, options.port), options.buffer)?;
    print::line(&Began { kind: "began", mtu: trials.mtu, full: trials.full })?;
    let limits = Limits {
        trial: options.trial,
        confirm: options.confirm,
        resolution: options.resolution / 100.0,
        path_loss: 0.0,
        again: 0,
    };
    for size in &options.sizes {
        let mut on = OnPath { size: size.bytes(&trials)?, trials: &mut trials };
        let split = socket::split_so_far(on.trials.v4);
        let ascent = rate_search::ascend(&mut on, ASCENT)?;
        // All datagrams of a size are split, or none.
        let split = socket::split_so_far(on.trials.v4).zip(split).map(|(after, before)| after - before);
        let split = split.map(|count| (count as f64 / ascent.sent.max(1) as f64).min(1.0));
        let mut search = RateSearch::new(&mut on, limits, ascent.offered_max);
        for loss in &options.loss {
            let found = search.highest(loss / 100.0, ascent.last.delivered)?;
            print::line(&Ended {
                kind: "found",
                name: size.name(),
                size: ascent.last.size,
                loss: *loss,
                offered_max: found.offered_max,
                split,
                limit: found.limit,
                failed: found.failed,
                confirmed: found.confirmed.as_ref(),
            })?;
        }
    }
    print::line(&Over { kind: "end" })
}

/// Two more trials. On a link with one burst a second, a trial of 0.3 s meets a burst in 27 cases of 100, and three
/// trials in a row do in two.
const AGAIN: u32 = 2;

/// How much a path carries, apart from what it loses at any rate. Returns the share that it loses, and what was found.
///
/// A load must be possible on a path that loses, too, so here loss counts from what is lost at a tenth of the rate.
pub fn capacity(trials: &mut Trials, size: usize, bound: f64) -> Result<(f64, Found), String> {
    let mut on = OnPath { size, trials };
    let ascent = rate_search::ascend(&mut on, ASCENT)?;
    let mut limits = Limits { trial: 0.3, confirm: 0.5, resolution: 0.03, path_loss: 0.0, again: AGAIN };
    let light = (LIGHT * ascent.last.delivered).max(1.0);
    let light = on.trial(light, (ENOUGH / light).clamp(limits.confirm, LONGEST))?;
    limits.path_loss = light.lost as f64 / light.sent.max(1) as f64;
    let found = RateSearch::new(&mut on, limits, ascent.offered_max).highest(bound, ascent.last.delivered)?;
    Ok((limits.path_loss, found))
}

/// A path at one size; every trial is printed.
struct OnPath<'a> {
    size: usize,
    trials: &'a mut Trials,
}

impl Path for OnPath<'_> {
    fn trial(&mut self, rate: f64, seconds: f64) -> Result<Trial, String> {
        let trial = self.trials.carry_out(self.size, rate, seconds)?;
        print::line(&Tried { kind: "trial", trial: &trial })?;
        Ok(trial)
    }
}
