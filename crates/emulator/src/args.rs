//! Reads the command line.

use crate::rehearse::Schedule;

/// What the command line says.
#[derive(Debug, PartialEq)]
pub struct Args {
    pub config: String,
    pub check: bool,
    pub ports: Vec<PortArg>,
    pub macs: Vec<(String, [u8; 6])>,
    pub memory_mib: usize,
    pub spin_us: u64,
    pub spin_share: f64,
    pub join_us: u64,
    pub priority: i32,
    pub napi: bool,
    pub rehearse: Vec<Schedule>,
}

/// A port.
#[derive(Debug, PartialEq)]
pub struct PortArg {
    pub name: String,
    pub kind: Kind,
}

/// How packets cross a port.
#[derive(Debug, PartialEq)]
pub enum Kind {
    /// An interface of that name exists here; a packet socket.
    Packet,
    /// An interface of that name exists here; AF_XDP if the machine allows it, else a packet socket.
    Xdp,
    /// A TAP device is made.
    Tap(TapArg),
}

/// Where the interface of a TAP device goes.
#[derive(Debug, PartialEq)]
pub struct TapArg {
    pub place: Place,
    pub interface: String,
}

/// A network namespace.
#[derive(Debug, PartialEq)]
pub enum Place {
    Process(u32),
    Descriptor(i32),
}

pub const USAGE: &str =
    "usage: tunnelmark-emulator --config FILE (--port NAME | --xdp NAME | --tap NAME=PID:IFACE)... [--mac NAME=ADDRESS]...
       [--memory-mib N] [--spin-us N] [--spin-share S] [--join-us N] [--priority N] [--napi]
       tunnelmark-emulator --config FILE (--check | --rehearse INTERVAL_NS,BYTES,PIECES,COUNT,EVENT_US...)
see docs/emulator.md";

impl Args {
    /// Whether ports are to be XDP.
    pub fn xdp(&self) -> bool {
        self.ports.iter().any(|port| port.kind == Kind::Xdp)
    }

    pub fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self {
            config: String::new(),
            check: false,
            ports: vec![],
            macs: vec![],
            memory_mib: 256,
            spin_us: 80,
            spin_share: 0.1,
            join_us: 100,
            priority: 10,
            napi: false,
            rehearse: vec![],
        };
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--check" => args.check = true,
                "--napi" => args.napi = true,
                "--config" => args.config = value()?,
                "--rehearse" => args.rehearse.push(Schedule::parse(&value()?)?),
                "--port" => args.ports.push(PortArg { name: value()?, kind: Kind::Packet }),
                "--xdp" => args.ports.push(PortArg { name: value()?, kind: Kind::Xdp }),
                "--tap" => args.ports.push(tap(&value()?)?),
                "--mac" => args.macs.push(mac(&value()?)?),
                "--memory-mib" => args.memory_mib = number(&word, &value()?)?,
                "--spin-us" => args.spin_us = number(&word, &value()?)?,
                "--spin-share" => args.spin_share = number(&word, &value()?)?,
                "--join-us" => args.join_us = number(&word, &value()?)?,
                "--priority" => args.priority = number(&word, &value()?)?,
                _ => return Err(format!("{word} is unknown\n{USAGE}")),
            }
        }
        if args.config.is_empty() {
            return Err(format!("--config is missing\n{USAGE}"));
        }
        let carries = !args.check && args.rehearse.is_empty();
        if carries && !(2..=64).contains(&args.ports.len()) {
            return Err(format!("a link has 2 to 64 ports, not {}", args.ports.len()));
        }
        let xdp = args.ports.iter().filter(|port| port.kind == Kind::Xdp).count();
        if args.xdp() && xdp != args.ports.len() {
            return Err("--xdp is for all ports or none: it cannot carry the super-packets of the others".into());
        }
        for (place, port) in args.ports.iter().enumerate() {
            if args.ports[..place].iter().any(|other| other.name == port.name) {
                return Err(format!("there are two ports called {}", port.name));
            }
        }
        Ok(args)
    }
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{option}: {text} is not a number that fits"))
}

fn tap(text: &str) -> Result<PortArg, String> {
    let wrong = || format!("--tap {text}: must be NAME=PID:IFACE or NAME=fd:N:IFACE");
    let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
    let (place, interface) = rest.rsplit_once(':').ok_or_else(wrong)?;
    let place = match place.strip_prefix("fd:") {
        Some(descriptor) => Place::Descriptor(descriptor.parse().map_err(|_| wrong())?),
        None => Place::Process(place.parse().map_err(|_| wrong())?),
    };
    // IFNAMSIZ counts the final 0.
    if name.is_empty() || interface.is_empty() || interface.len() > 15 {
        return Err(wrong());
    }
    Ok(PortArg { name: name.into(), kind: Kind::Tap(TapArg { place, interface: interface.into() }) })
}

fn mac(text: &str) -> Result<(String, [u8; 6]), String> {
    let parse = || {
        let (name, address) = text.split_once('=')?;
        let bytes: Vec<u8> =
            address.split(':').map(|byte| u8::from_str_radix(byte, 16)).collect::<Result<_, _>>().ok()?;
        Some((name.to_string(), bytes.try_into().ok()?))
    };
    parse().ok_or_else(|| format!("--mac {text}: must be NAME=02:00:00:00:00:01"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(line.split_whitespace().map(str::to_string))
    }

    #[test]
    fn a_full_command_line() {
        let args =
            parse("--config c --port a.0 --tap b.0=12:eth0 --tap c.0=fd:3:eth1 --mac a.0=02:0:0:0:0:ff").unwrap();
        assert_eq!(args.ports[0], PortArg { name: "a.0".into(), kind: Kind::Packet });
        let tap = TapArg { place: Place::Descriptor(3), interface: "eth1".into() };
        assert_eq!(args.ports[2].kind, Kind::Tap(tap));
        assert_eq!(parse("--config c --xdp a --xdp b").unwrap().ports[1].kind, Kind::Xdp);
        assert_eq!(args.macs, [("a.0".to_string(), [2, 0, 0, 0, 0, 255])]);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("--port a", "--config"),
            ("--config c --port a", "2 to 64"),
            ("--config c --port a --port a", "two ports"),
            ("--config c --xdp a --port b", "all ports or none"),
            ("--config c --tap a=x:eth0", "--tap a=x:eth0"),
            ("--config c --spin-us x", "--spin-us"),
            ("--config", "needs a value"),
            ("--wrong", "unknown"),
        ] {
            let found = parse(line).unwrap_err();
            assert!(found.contains(part), "{found}");
        }
    }
}
