//! Runs the loop: receive, decide, send what is due, and wait for what comes first.

use std::io::Result;

use emulator_core::config::{Config, Invalid};

use crate::batch::Batch;
use crate::blame::Pauses;
use crate::control::Control;
use crate::direction::Lane;
use crate::outbox::Outbox;
use crate::pace::Pace;
use crate::pool::Pool;
use crate::port::Port;
use crate::report::{self, Line, Printer, Report};
use crate::switch::Switch;
use crate::sys;
use crate::virtio_net::{HEADER, Vnet};

/// Between two reports, and at most between two looks at the control while packets never stop.
const REPORT: u64 = 1_000_000_000;
const LOOK: u64 = 5_000_000;
/// Late departures whose lateness is divided between two looks at the ports: some microseconds.
const DIVIDED: usize = 16;

/// The link with its ports.
pub struct Engine {
    pub ports: Vec<Port>,
    lanes: Vec<Lane>,
    /// The direction of each pair of ports, if any.
    lane_of: Vec<Option<usize>>,
    switch: Switch,
    batch: Batch,
    direct: Vec<Vec<usize>>,
    pool: Pool,
    outbox: Outbox,
    pace: Pace,
    known: Pauses,
    zero: u64,
}

impl Engine {
    pub fn new(
        config: &Config,
        ports: Vec<Port>,
        switch: Switch,
        settings: Settings,
    ) -> std::result::Result<Self, Invalid> {
        let count = ports.len();
        let lanes = (0..config.directions.len())
            .map(|place| Lane::new(config, place))
            .collect::<std::result::Result<_, _>>()?;
        let is = |wanted: &Option<String>, port: &Port| wanted.as_ref().is_none_or(|name| *name == port.name);
        let lane = |from: &Port, to: &Port| config.directions.iter().position(|d| is(&d.from, from) && is(&d.to, to));
        let lane_of = ports.iter().flat_map(|from| ports.iter().map(move |to| lane(from, to))).collect();
        Ok(Self {
            lanes,
            lane_of,
            switch,
            batch: Batch::new(),
            direct: vec![vec![]; count],
            pool: Pool::new(settings.memory_bytes),
            outbox: Outbox::new(count, settings.join_ns),
            pace: settings.pace,
            known: Pauses::default(),
            zero: 0,
            ports,
        })
    }

    /// Carries packets until asked to end, or until a port is gone; reports in any case.
    pub fn run(&mut self, control: &mut Control, printer: &Printer) -> Result<()> {
        let start = sys::now();
        let result = self.carry(start, control, printer);
        printer.line(self.report(sys::now() - start, None, true));
        result
    }

    fn carry(&mut self, start: u64, control: &mut Control, printer: &Printer) -> Result<()> {
        self.restart(start);
        let (mut report_at, mut look_at) = (start + REPORT, start);
        let mut fds: Vec<libc::pollfd> =
            control.fds().into_iter().chain(self.ports.iter().map(Port::fd)).map(sys::readable).collect();
        while !control.end() {
            let received = self.receive()?;
            let next = self.depart();
            let now = sys::now();
            let asked = control.report();
            if let Some(told) = control.pauses() {
                self.known.follow(told);
            }
            let most = if asked.is_some() { usize::MAX } else { DIVIDED };
            self.lanes.iter_mut().for_each(|lane| lane.settle(&self.known, most));
            if control.zero() {
                self.restart(now);
            }
            if now >= report_at || asked.is_some() {
                printer.line(self.report(now - start, asked, false));
                report_at = report_at.max(now.saturating_sub(REPORT)) + if now >= report_at { REPORT } else { 0 };
            }
            let until = next.map_or(report_at, |next| next.min(report_at));
            let waited = self.pace.wait(&mut fds, now, until, received)?;
            if waited || now >= look_at {
                look_at = now + LOOK;
                control.look();
            }
        }
        Ok(())
    }

    fn restart(&mut self, now: u64) {
        self.zero = now;
        for lane in &mut self.lanes {
            lane.restart(now);
        }
    }

    /// Takes what waits at the ports; whether there was anything.
    fn receive(&mut self) -> Result<bool> {
        let mut any = false;
        for from in 0..self.ports.len() {
            let got = self.ports[from].receive(&mut self.batch)?;
            any |= got > 0;
            for number in 0..got {
                self.one(from, number);
            }
            for (to, numbers) in self.direct.iter_mut().enumerate() {
                if !numbers.is_empty() {
                    self.ports[to].forward(&self.batch, numbers);
                    numbers.clear();
                }
            }
        }
        Ok(any)
    }

    fn one(&mut self, from: usize, number: usize) {
        let raw = self.batch.raw(number);
        // Shorter than an Ethernet header: not a frame.
        if raw.len() < HEADER + 14 {
            return;
        }
        let (vnet, frame) = (Vnet::parse(raw), &raw[HEADER..]);
        let mut to = self.switch.route(from, frame);
        while to != 0 {
            let port = to.trailing_zeros() as usize;
            to &= to - 1;
            match self.lane_of[from * self.ports.len() + port].map(|lane| &mut self.lanes[lane]) {
                Some(lane) if !lane.transparent => lane.offer(sys::now(), port as u8, vnet, frame, &mut self.pool),
                lane => {
                    if let Some(lane) = lane {
                        lane.pass(&vnet, frame);
                    }
                    self.direct[port].push(number);
                }
            }
        }
    }

    /// Sends what is due, of each direction one full box at most; when something will be next, or now if there is more.
    fn depart(&mut self) -> Option<u64> {
        let mut first: Option<u64> = None;
        for place in 0..self.lanes.len() {
            let lane = &mut self.lanes[place];
            if lane.transparent {
                continue;
            }
            let now = sys::now();
            let mut full = false;
            while !full && let Some(departure) = lane.link.take(now) {
                full = self.outbox.add(departure, &mut self.pool);
            }
            self.outbox.end_run(&mut self.pool);
            self.outbox.flush(&mut self.ports, lane, &mut self.pool);
            let next = if full { Some(now) } else { lane.link.next_departure() };
            first = first.map_or(next, |first| Some(next.map_or(first, |next| next.min(first))));
        }
        first
    }

    fn report(&mut self, elapsed: u64, request: Option<u64>, last: bool) -> Line {
        let ports = self.ports.iter_mut();
        Line::Report(Box::new(Report {
            elapsed_us: elapsed / 1000,
            zero_ns: self.zero,
            request,
            last,
            cpu_us: sys::thread_cpu() / 1000,
            directions: self.lanes.iter_mut().map(Lane::report).collect(),
            ports: ports.map(|port| report::Port { name: port.name.clone(), faults: port.faults() }).collect(),
        }))
    }
}

/// What the command line sets.
pub struct Settings {
    pub memory_bytes: usize,
    pub join_ns: u64,
    pub pace: Pace,
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;
    use crate::netlink::Netlink;
    use crate::packet::Packet;
    use crate::port::Device;

    /// A port, and who is at the other end of it.
    fn port(name: &str) -> (Port, UnixDatagram) {
        let (own, other) = UnixDatagram::pair().unwrap();
        other.set_nonblocking(true).unwrap();
        let device = Device::Packet(Packet::over(own.into()));
        (Port::new(name.into(), "af_packet".into(), device, Netlink::open().unwrap(), "lo".into()).unwrap(), other)
    }

    #[test]
    fn a_burst_of_large_frames_lets_the_other_direction_in_between() {
        let config: Config = serde_json::from_str(
            r#"{"seed": 1, "directions": [{"name": "there", "from": "a.0", "to": "b.0", "stages": {"delay_us": 1}}]}"#,
        )
        .unwrap();
        let ((a, at_a), (b, at_b)) = (port("a.0"), port("b.0"));
        let settings = Settings { memory_bytes: 1 << 20, join_ns: 0, pace: Pace::new(0, 0.0, false) };
        let mut engine = Engine::new(&config, vec![a, b], Switch::new(2, &[]), settings).unwrap();
        engine.restart(sys::now());
        let frame = [[0; HEADER].as_slice(), &[0xff; 40 << 10]].concat(); // to all
        for _ in 0..4 {
            at_a.send(&frame).unwrap();
        }
        assert!(engine.receive().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(1)); // all are due
        let arrived = |at: &UnixDatagram| std::iter::from_fn(|| at.recv(&mut [0; 64]).ok()).count();

        let more = engine.depart().unwrap();
        assert!(more <= sys::now(), "there is more to send");
        assert_eq!(arrived(&at_b), 2);
        at_b.send(&frame[..HEADER + 64]).unwrap();
        assert!(engine.receive().unwrap());
        assert_eq!(arrived(&at_a), 1);
        engine.depart();
        assert_eq!(arrived(&at_b), 2);
        assert_eq!(engine.depart(), None);
    }
}
