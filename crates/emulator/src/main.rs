//! `tunnelmark-emulator`: the link between the nodes of a lab. `docs/emulator.md` is its contract.
//!
//! ```text
//! ports ──batch──> engine ──offer──> lane (emulator-core's Link) ──departures──> outbox ──> ports
//!                    │ pool: packets that are held        │ joins neighbours again
//!                    │ pace: when to sleep                 control: stdin, signals; report: JSON lines
//! ```

mod args;
mod batch;
mod blame;
mod bpf;
mod control;
mod direction;
mod engine;
mod histogram;
mod inet;
mod netlink;
mod outbox;
mod pace;
mod packet;
mod pool;
mod port;
mod rehearse;
mod report;
mod ring;
mod switch;
mod sys;
mod tap;
mod virtio_net;
mod xsk;

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;

use emulator_core::config::{Config, Unit};

use args::{Args, Kind, Place, PortArg, TapArg};
use engine::{Engine, Settings};
use netlink::Netlink;
use port::{Device, Port};
use report::{Line, Printer, Ready};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(status, why)) => {
            eprintln!("tunnelmark-emulator: {why}");
            ExitCode::from(status)
        }
    }
}

/// An exit status and a reason: 2 for what the user must change, 1 for what the machine refused.
struct Failure(u8, String);

fn wrong(why: impl std::fmt::Display) -> Failure {
    Failure(2, why.to_string())
}

fn refused(what: &str) -> impl FnOnce(std::io::Error) -> Failure + '_ {
    move |error| Failure(1, format!("{what}: {error}"))
}

fn run() -> Result<(), Failure> {
    let args = Args::parse(std::env::args().skip(1)).map_err(wrong)?;
    let config = read(&args.config)?;
    config.check().map_err(wrong)?;
    units_fit(&config, &args)?;
    if args.check {
        return Ok(());
    }
    if !args.rehearse.is_empty() {
        return rehearse(&config, &args);
    }
    let signals = sys::end_signals().map_err(refused("signals"))?;
    let ports = open_all(&args)?;
    known_ports(&config, &ports)?;
    let place = |name: &String| ports.iter().position(|port| port.name == *name);
    let mut macs = vec![];
    for (name, mac) in &args.macs {
        macs.push((*mac, place(name).ok_or_else(|| wrong(format!("--mac {name}: there is no such port")))?));
    }
    let switch = switch::Switch::new(ports.len(), &macs);

    let printer = Printer::start();
    let mut control = control::Control::start(signals).map_err(refused("standard input"))?;
    // After the other threads have started: they must not have our priority.
    sys::exact_timers();
    let scheduler = scheduler(args.priority);
    let pace = pace::Pace::new(args.spin_us, args.spin_share, scheduler.starts_with("fifo"));
    let settings = Settings { memory_bytes: args.memory_mib << 20, join_ns: args.join_us * 1000, pace };
    let mut engine = Engine::new(&config, ports, switch, settings).map_err(wrong)?;
    printer.line(Line::Ready(Ready {
        version: env!("CARGO_PKG_VERSION"),
        ports: engine.ports.iter().map(|port| port.name.clone()).collect(),
        datapaths: engine.ports.iter().map(|port| port.datapath.clone()).collect(),
        directions: config.directions.iter().map(|direction| direction.name.clone()).collect(),
        scheduler,
    }));
    engine.run(&mut control, &printer).map_err(refused("carrying packets"))
}

/// Prints a line for each schedule and direction.
fn rehearse(config: &Config, args: &Args) -> Result<(), Failure> {
    for schedule in &args.rehearse {
        for place in 0..config.directions.len() {
            let found = schedule.carry_out(config, place).map_err(wrong)?;
            println!("{}", serde_json::to_string(&found).map_err(wrong)?);
        }
    }
    Ok(())
}

fn read(place: &str) -> Result<Config, Failure> {
    let text = if place == "-" {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(refused("standard input"))?;
        line
    } else {
        std::fs::read_to_string(place).map_err(refused(place))?
    };
    serde_json::from_str(&text).map_err(|error| wrong(format!("{place}: {error}")))
}

/// Refuses a direction that names a port that does not exist, because it would silently do nothing.
fn known_ports(config: &Config, ports: &[Port]) -> Result<(), Failure> {
    for (number, direction) in config.directions.iter().enumerate() {
        for (field, name) in [("from", &direction.from), ("to", &direction.to)] {
            if let Some(name) = name.as_ref().filter(|name| !ports.iter().any(|port| port.name == **name)) {
                return Err(wrong(format!("directions[{number}].{field}: there is no port {name}")));
            }
        }
    }
    Ok(())
}

/// All ports; where XDP is asked for and one of them cannot have it, all are packet sockets.
fn open_all(args: &Args) -> Result<Vec<Port>, Failure> {
    let all = |without: Option<&str>| args.ports.iter().map(|port| open(port, args, without)).collect();
    match all(None) {
        Err(Failure(_, why)) if args.xdp() => all(Some(&why)),
        result => result,
    }
}

/// A unit of super-packets would never meet one.
fn units_fit(config: &Config, args: &Args) -> Result<(), Failure> {
    match config.directions.iter().position(|direction| direction.unit == Unit::Gso) {
        Some(number) if args.xdp() => {
            Err(wrong(format!("directions[{number}].unit: no super-packet crosses an --xdp port; --port carries them")))
        }
        _ => Ok(()),
    }
}

/// One port; `without` says why it is not to be XDP.
fn open(port: &PortArg, args: &Args, without: Option<&str>) -> Result<Port, Failure> {
    let failed = |error: std::io::Error| Failure(1, format!("port {}: {error}", port.name));
    let mut datapath = "af_packet".to_string();
    let (device, netlink, interface) = match &port.kind {
        Kind::Xdp if without.is_none() => {
            datapath = "af_xdp".into();
            let device = Box::new(xsk::Xsk::open(&port.name).map_err(failed)?);
            (Device::Xdp(device), Netlink::open().map_err(failed)?, port.name.clone())
        }
        Kind::Packet | Kind::Xdp => {
            if let Some(why) = without {
                datapath = format!("af_packet (no af_xdp: {why})");
            }
            let device = packet::Packet::open(&port.name).map_err(failed)?;
            (Device::Packet(device), Netlink::open().map_err(failed)?, port.name.clone())
        }
        Kind::Tap(TapArg { place, interface }) => {
            datapath = "tap".into();
            let mac = args.macs.iter().find(|(name, _)| *name == port.name).map(|(_, mac)| *mac);
            let file = match place {
                Place::Process(pid) => Some(File::open(format!("/proc/{pid}/ns/net")).map_err(failed)?),
                Place::Descriptor(_) => None,
            };
            let namespace = match (place, &file) {
                (_, Some(file)) => file.as_fd(),
                // SAFETY: the user says that it is open; if not, the kernel says so.
                (Place::Descriptor(descriptor), None) => unsafe { BorrowedFd::borrow_raw(*descriptor) },
                (Place::Process(_), None) => unreachable!("opened above"),
            };
            let (tap, netlink) = tap::Tap::open(namespace, interface, mac, args.napi).map_err(failed)?;
            (Device::Tap(tap), netlink, interface.clone())
        }
    };
    Port::new(port.name.clone(), datapath, device, netlink, interface).map_err(failed)
}

/// Real-time priority if it is allowed; what came of it, in words.
fn scheduler(priority: i32) -> String {
    if priority == 0 {
        return "other".into();
    }
    match sys::fifo(priority) {
        Ok(()) => format!("fifo {priority}"),
        Err(error) => format!("other (fifo {priority}: {error})"),
    }
}
