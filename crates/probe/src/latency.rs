//! The subcommand `latency`: one-way delays both ways, on an idle path and under load, against a `serve`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clap::Args;
use serde::Serialize;

use crate::clock::{self, MILLISECOND, SECOND};
use crate::control::{Answer, Asker, ProbePlan, Question};
use crate::pace;
use crate::packet;
use crate::print;
use crate::probes::{self, Arrivals};
use crate::rate_search::Limit;
use crate::search::{self, Size};
use crate::serve;
use crate::socket;
use crate::trial::{Trial, Trials};

/// From a question to the first datagram: enough for the question to be lost once. Doubled when it was not enough.
const LEAD: u64 = 250 * MILLISECOND;

/// A path on which this is not enough is not measured.
const LONGEST_LEAD: u64 = 8 * SECOND;

/// How long nothing must have arrived before a missing probe counts as lost.
const STRAGGLERS: u64 = 500 * MILLISECOND;

/// How long stragglers are waited for in all.
const DRAIN: u64 = 15 * SECOND;

/// The share of loss, besides the path's own, up to which a rate counts as carried when the capacity is searched.
const BOUND: f64 = 0.001;

/// What to measure.
#[derive(Args)]
pub struct Options {
    /// The server's address
    #[arg(long)]
    to: IpAddr,
    /// The server's port for trials; probes have the next one
    #[arg(long, default_value_t = serve::PORT)]
    port: u16,
    /// Bytes of socket buffer to ask for
    #[arg(long, default_value_t = 4 << 20)]
    buffer: usize,
    /// Payloads of probes on the idle path in bytes, one after the other in turn; under load the first alone
    #[arg(long, value_delimiter = ',', default_value = "100,500,1000")]
    sizes: Vec<usize>,
    /// Loads in per cent of the capacity
    #[arg(long, value_delimiter = ',', default_value = "0,50,90")]
    load: Vec<f64>,
    /// Payload of the load's datagrams in bytes, or `full` for what fits the path's MTU
    #[arg(long, default_value = "full")]
    load_size: Size,
    /// Milliseconds between two probes of a way
    #[arg(long, default_value_t = 1.0)]
    interval: f64,
    /// Seconds of probes at each load
    #[arg(long, default_value_t = 3.0)]
    duration: f64,
    /// Seconds of load before the first probe
    #[arg(long, default_value_t = 0.3)]
    settle: f64,
}

#[derive(Serialize)]
struct Capacity {
    kind: &'static str,
    size: usize,
    rate: f64,
    path_loss: f64,
    limit: Option<Limit>,
}

#[derive(Serialize)]
struct Loaded<'a> {
    kind: &'static str,
    load: f64,
    #[serde(flatten)]
    trial: &'a Trial,
}

#[derive(Serialize)]
struct Over {
    kind: &'static str,
    /// Bytes of the server's answers that arrived besides the probes.
    answers: u64,
}

/// Measures, and prints the delays of every probe.
pub fn run(options: &Options) -> Result<(), String> {
    check(options)?;
    let mut trials = Trials::with(SocketAddr::new(options.to, options.port), options.buffer)?;
    let size = options.load_size.bytes(&trials)?;
    let mut capacity = 0.0;
    if options.load.iter().any(|load| *load > 0.0) {
        let (path_loss, found) = search::capacity(&mut trials, size, BOUND)?;
        let carried = found.confirmed.ok_or("no rate was carried for as long as it takes to confirm it: no load")?;
        capacity = carried.offered;
        print::line(&Capacity { kind: "capacity", size, rate: capacity, path_loss, limit: found.limit })?;
    }
    let mut answers = 0;
    for load in &options.load {
        answers += level(options, &mut trials, *load, capacity * load / 100.0, size)?;
    }
    print::line(&Over { kind: "end", answers: answers + trials.answers() })
}

fn check(options: &Options) -> Result<(), String> {
    if let Some(size) = options.sizes.iter().find(|size| !(packet::LEN..=65507).contains(*size)) {
        return Err(format!("probes of {size} B: should be from {} to 65507 B", packet::LEN));
    }
    let positive = |value: f64| value > 0.0 && value.is_finite();
    if options.sizes.is_empty() || !positive(options.interval) || !positive(options.duration) {
        return Err("sizes, --interval and --duration should be above zero".into());
    }
    Ok(())
}

/// Sends probes both ways during a load of `rate` datagrams a second. Returns the bytes of answers that arrived over
/// the probes' socket.
fn level(options: &Options, trials: &mut Trials, load: f64, rate: f64, size: usize) -> Result<u64, String> {
    let server = SocketAddr::new(options.to, options.port + 1);
    let socket = socket::connected(server, options.buffer).map_err(|error| format!("a socket to {server}: {error}"))?;
    let second = || socket.try_clone().map_err(|error| format!("a second handle on a socket: {error}"));
    let mut asker = Asker::new(second()?);
    let settle = if rate > 0.0 { options.settle } else { 0.0 };
    // The server must know of both before either begins: under load its answers may be lost.
    let mut schedule = if rate > 0.0 { Some(trials.announce(size, rate, settle + options.duration)?) } else { None };
    let sizes = if rate > 0.0 { options.sizes[..1].to_vec() } else { options.sizes.clone() };
    let (plan, start) = agree(options, &mut asker, load, sizes, settle)?;
    if let Some(schedule) = &mut schedule {
        schedule.start = start;
    }

    let arrivals = Mutex::new(Arrivals::new(plan.clone()));
    let over = AtomicBool::new(false);
    let (loader, receiver) = (trials.socket()?, second()?);
    let sent = thread::scope(|scope| {
        let collected = scope.spawn(|| probes::collect(&receiver, &arrivals, || over.load(Ordering::Relaxed)));
        let loaded = schedule.as_ref().map(|schedule| scope.spawn(|| pace::send(&loader, schedule, || false)));
        let probed = probes::send(&socket, None, &plan, plan.forward, || true);
        let sent = loaded.map(|thread| thread.join().expect("the load does not panic")).transpose();
        if probed.is_ok() && sent.is_ok() {
            drain(&arrivals, plan.probes);
        }
        over.store(true, Ordering::Relaxed);
        collected.join().expect("collecting does not panic")?;
        probed.and(sent)
    })?;

    finish(&mut asker, &plan)?;
    arrivals.lock().expect("no holder panics").print("back")?;
    if let (Some(schedule), Some(sent)) = (schedule, sent) {
        let trial = trials.conclude(&schedule, &sent)?;
        print::line(&Loaded { kind: "load", load, trial: &trial })?;
    }
    Ok(asker.answers)
}

/// Has the server know when both ways begin, before they do. Returns the plan, and when a load is to begin.
fn agree(
    options: &Options,
    asker: &mut Asker,
    load: f64,
    sizes: Vec<usize>,
    settle: f64,
) -> Result<(ProbePlan, u64), String> {
    let interval = (options.interval * MILLISECOND as f64) as u64;
    let probes = ((options.duration * SECOND as f64) as u64 / interval).max(1);
    let mut lead = LEAD;
    while lead < LONGEST_LEAD {
        asker.ask(&Question::Hello)?;
        let begin = clock::now() + lead + 2 * asker.round_trip;
        let forward = begin + (settle * SECOND as f64) as u64;
        // Half an interval apart, so that probes of the two ways do not meet at the ends.
        let (run, back) = (clock::now() as u32, forward + interval / 2);
        let plan = ProbePlan { run, load, sizes: sizes.clone(), probes, interval, forward, back };
        asker.ask(&Question::Probe(plan.clone()))?;
        if clock::now() < begin {
            return Ok((plan, begin));
        }
        lead *= 2; // the question was lost too often: its probes back would have begun late
    }
    Err("the server did not learn in time when to begin: too much is lost".into())
}

/// Waits for the probes that are still on their way back.
fn drain(arrivals: &Mutex<Arrivals>, probes: u64) {
    let begin = clock::now();
    loop {
        let now = clock::now();
        let (arrived, quiet) = arrivals.lock().expect("no holder panics").progress(now);
        if arrived >= probes || quiet.min(now - begin) > STRAGGLERS || now - begin > DRAIN {
            return;
        }
        clock::sleep_until(now + 10 * MILLISECOND);
    }
}

/// Waits for the probes that are still on their way forward, and has their delays printed.
fn finish(asker: &mut Asker, plan: &ProbePlan) -> Result<(), String> {
    let begin = clock::now();
    loop {
        let Answer::Progress { arrived, quiet } = asker.ask(&Question::Progress { run: plan.run })? else {
            return Err("the server answered something else than its progress".into());
        };
        let waited = clock::now() - begin;
        if arrived >= plan.probes || quiet.min(waited) > STRAGGLERS || waited > DRAIN {
            break;
        }
        clock::sleep_until(clock::now() + 20 * MILLISECOND);
    }
    asker.ask(&Question::Finish { run: plan.run }).map(|_| ())
}
