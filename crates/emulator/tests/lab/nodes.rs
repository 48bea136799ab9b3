//! Makes network namespaces for tests, with the program between them.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How nodes are joined to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TAP devices.
    Tap,
    /// veth pairs without segmentation offload, as in the lab.
    Veth,
    /// veth pairs with it.
    Super,
    /// veth pairs with XDP on the link's end, and nodes that leave their checksums to hardware.
    Xdp,
    /// The same with two receive queues, which XDP is not for.
    Queues,
}

/// Whether namespaces can be made.
pub fn root() -> bool {
    // SAFETY: takes and returns numbers only.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        eprintln!("skipped: not root");
    }
    root
}

/// A process that does nothing in a network namespace of its own.
struct Node(Child);

impl Node {
    fn new() -> Self {
        let child = Command::new("unshare").args(["-n", "sleep", "100"]).spawn().unwrap();
        let ours = std::fs::read_link("/proc/self/ns/net").unwrap();
        let place = format!("/proc/{}/ns/net", child.id());
        while std::fs::read_link(&place).unwrap() == ours {
            std::thread::sleep(Duration::from_millis(2));
        }
        let node = Self(child);
        // No packet but the test's own.
        node.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1");
        node
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.pid().to_string(), "-n"]).args(line.split_whitespace());
        command
    }

    fn run(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Does something in the network namespace of a process; for a thread that ends with it.
pub fn inside<T>(pid: u32, what: impl FnOnce() -> T) -> T {
    let namespace = File::open(format!("/proc/{pid}/ns/net")).unwrap();
    // SAFETY: takes numbers only.
    assert_eq!(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
    what()
}

/// What ping says.
#[derive(Debug)]
pub struct Ping {
    pub received: u32,
    pub min_ms: f64,
}

/// Nodes, and the link between them.
pub struct Lab {
    nodes: Vec<Node>,
    _middle: Node,
    emulator: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    requests: u64,
    /// How packets cross, as the program says.
    pub datapaths: Vec<String>,
}

impl Lab {
    pub fn new(kind: Kind, names: &[&str], config: &str) -> Self {
        let middle = Node::new();
        let nodes: Vec<Node> = names.iter().map(|_| Node::new()).collect();
        let mut line = format!("{} --config -", env!("CARGO_BIN_EXE_tunnelmark-emulator"));
        for (name, node) in names.iter().zip(&nodes) {
            let pid = node.pid();
            if kind == Kind::Tap {
                line += &format!(" --tap {name}.0={pid}:eth0");
                continue;
            }
            let more = if kind == Kind::Queues { "numrxqueues 2" } else { "" };
            middle.run(&format!("ip link add {name}.0 {more} type veth peer name eth0 netns {pid}"));
            if kind == Kind::Queues {
                middle.run(&format!("ethtool -L {name}.0 rx 2"));
            }
            middle.run(&format!("ip link set {name}.0 up"));
            if kind == Kind::Veth {
                node.run("ethtool -K eth0 tso off tx-udp-segmentation off");
            }
            node.run("ip link set eth0 up");
            let xdp = matches!(kind, Kind::Xdp | Kind::Queues);
            line += &format!(" --{} {name}.0", if xdp { "xdp" } else { "port" });
        }
        let mut emulator = middle.command(&line).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = emulator.stdin.take().unwrap();
        writeln!(input, "{}", config.replace('\n', " ")).unwrap();
        let mut output = BufReader::new(emulator.stdout.take().unwrap());
        let mut ready = String::new();
        output.read_line(&mut ready).unwrap();
        let said: serde_json::Value = serde_json::from_str(&ready).unwrap();
        let datapaths = serde_json::from_value(said["ready"]["datapaths"].clone()).unwrap();
        for (place, node) in nodes.iter().enumerate() {
            node.run(&format!("ip link set eth0 address 02:00:00:00:00:0{}", place + 1));
            node.run(&format!("ip addr add 10.77.0.{}/24 dev eth0", place + 1));
            for other in (1..=nodes.len()).filter(|&other| other != place + 1) {
                node.run(&format!(
                    "ip neigh add 10.77.0.{other} lladdr 02:00:00:00:00:0{other} dev eth0 nud permanent"
                ));
            }
        }
        Self { nodes, _middle: middle, emulator, input: Some(input), output, requests: 0, datapaths }
    }

    pub fn node(&self, place: usize) -> u32 {
        self.nodes[place].pid()
    }

    /// Pings without warm-up, each sent once; after the last, ping waits for twice the longest round trip only.
    pub fn ping(&self, from: usize, to: usize, count: u32, interval: f64) -> Ping {
        self.pinged(from, to, &format!("-W 1 -c {count} -i {interval}"))
    }

    /// Pings without warm-up until `count` are answered, or a few more that are read at once; for 20 seconds at most.
    pub fn answered(&self, from: usize, to: usize, count: u32, interval: f64) -> Ping {
        self.pinged(from, to, &format!("-w 20 -c {count} -i {interval}"))
    }

    fn pinged(&self, from: usize, to: usize, options: &str) -> Ping {
        let line = format!("ping -n -q {options} 10.77.0.{}", to + 1);
        let output = self.nodes[from].command(&line).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let received = text.split(", ").find_map(|part| part.strip_suffix(" received")).unwrap_or("0").parse().unwrap();
        let min = text.split(" = ").nth(1).and_then(|times| times.split('/').next()).unwrap_or("0");
        Ping { received, min_ms: min.parse().unwrap() }
    }

    /// Answers to pings that have reached a node, as its kernel counts them: also those that ping did not wait for.
    pub fn answers(&self, at: usize) -> u32 {
        let counted = self.nodes[at].run("cat /proc/net/snmp");
        let mut lines = counted.lines().filter(|line| line.starts_with("Icmp:")).map(str::split_whitespace);
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        names.zip(values).find(|&(name, _)| name == "InEchoReps").unwrap().1.parse().unwrap()
    }

    /// Seconds from the sending of full frames, all at once, until the last has arrived.
    pub fn train(&self, from: usize, to: usize, frames: u32) -> f64 {
        let bound = |place: usize| {
            let node = self.node(place);
            let bind = move || UdpSocket::bind(format!("10.77.0.{}:5000", place + 1)).unwrap();
            std::thread::spawn(move || inside(node, bind)).join().unwrap()
        };
        let (sender, receiver) = (bound(from), bound(to));
        sender.connect(format!("10.77.0.{}:5000", to + 1)).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let begun = Instant::now();
        for _ in 0..frames {
            sender.send(&[7; 1472]).unwrap();
        }
        for _ in 0..frames {
            receiver.recv(&mut [0; 2048]).unwrap();
        }
        begun.elapsed().as_secs_f64()
    }

    /// What the program reports now.
    pub fn report(&mut self) -> serde_json::Value {
        self.requests += 1;
        self.command(&format!("report {}", self.requests));
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            let said: serde_json::Value = serde_json::from_str(&line).unwrap();
            if said["report"]["request"] == self.requests {
                return said["report"].clone();
            }
        }
    }

    /// When the link's time began, as the program says.
    pub fn zero_ns(&mut self) -> u64 {
        self.report()["zero_ns"].as_u64().unwrap()
    }

    /// Starts the link's time again, and returns when it has: the thread that reads commands may wait for a core.
    pub fn zero(&mut self) {
        let before = self.zero_ns();
        self.command("zero");
        while self.zero_ns() == before {}
    }

    pub fn command(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Stops the program, or lets it go on.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the child is ours and not yet waited for.
        unsafe { libc::kill(self.emulator.id() as i32, signal) };
    }

    pub fn terminate(&self) {
        self.signal(libc::SIGTERM);
        std::thread::sleep(Duration::from_millis(50));
    }

    /// Ends the link, and returns its last report.
    pub fn finish(mut self) -> serde_json::Value {
        drop(self.input.take());
        let last = (&mut self.output).lines().map_while(Result::ok).last().unwrap();
        assert!(self.emulator.wait().unwrap().success());
        let line: serde_json::Value = serde_json::from_str(&last).unwrap();
        line["report"].clone()
    }
}
