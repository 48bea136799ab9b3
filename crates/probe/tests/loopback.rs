//! The program against itself on loopback. What is asserted is counted, and none of it depends on how fast the machine is.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tunnelmark-probe");

fn start(words: &[&str]) -> Child {
    Command::new(PROGRAM).args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn run(words: &[&str]) -> Output {
    Command::new(PROGRAM).args(words).output().expect("it starts")
}

/// A port that is free, and the one after it too.
fn free() -> u16 {
    loop {
        let one = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let port = one.local_addr().expect("it has an address").port();
        if port < u16::MAX && UdpSocket::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
}

/// Whether some UDP socket of this network has that port.
fn is_bound(port: u16) -> bool {
    let sockets = std::fs::read_to_string("/proc/net/udp").expect("there is UDP");
    sockets
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .any(|local| local.ends_with(&format!(":{port:04X}")))
}

/// Each line of what a program printed.
fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(object).collect()
}

fn object(text: &[u8]) -> Value {
    serde_json::from_slice(text).expect("a JSON object")
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} in {value}"))
}

/// A server that is ready, and ends with the test.
struct Server(Child);

impl Server {
    fn start(port: u16) -> Self {
        let mut child = start(&["serve", "--bind", "127.0.0.1", "--port", &port.to_string()]);
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().expect("it is piped")).read_line(&mut said).expect("text");
        assert_eq!(object(said.as_bytes())["kind"], "ready");
        Self(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn both_ends_of_a_stream_count_alike() {
    let (one, other) = (free(), free());
    let words = |port: u16, to: u16| {
        let to = format!("127.0.0.1:{to}");
        ["stream", "--to", &to, "--port", &port.to_string(), "--rate", "100", "--seconds", "0.5", "--linger", "1"]
            .map(str::to_string)
    };
    let mut ends: Vec<Child> = [words(one, other), words(other, one)]
        .iter()
        .map(|words| start(&words.iter().map(String::as_str).collect::<Vec<_>>()))
        .collect();
    for end in &mut ends {
        let mut said = String::new();
        end.stdout.take().expect("it is piped").read_to_string(&mut said).expect("text");
        assert!(end.wait().expect("it ends").success());
        let seen = object(said.as_bytes());
        assert_eq!(number(&seen, "sent"), 50);
        assert_eq!(number(&seen, "interval_ns"), 10_000_000);
        let arrivals = seen["arrivals"].as_array().expect("a list");
        assert!(arrivals.len() <= 50, "no datagram arrives twice on loopback");
        for arrival in arrivals {
            let [number, sent, arrived] = [0, 1, 2].map(|place| arrival[place].as_i64().expect("a number"));
            assert!((0..50).contains(&number));
            assert!(sent <= arrived, "nothing arrives before it is sent: {arrival}");
        }
    }
}

#[test]
fn the_largest_packet_of_loopback_is_found() {
    let port = free();
    let address = format!("127.0.0.1:{port}");
    let mut listener = start(&["mtu", "--listen", &address]);
    while !is_bound(port) {
        assert!(listener.try_wait().expect("it was started").is_none(), "it ended");
        sleep(Duration::from_millis(5));
    }
    let found = run(&["mtu", "--to", &address]);
    let _ = listener.kill();
    let _ = listener.wait();
    let said = lines(&found);
    let last = said.last().expect("a line");
    let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu").expect("there is loopback");
    let largest = mtu.trim().parse::<u64>().expect("a number").min(65535);
    assert!(last.to_string().contains(&largest.to_string()), "{largest} in {last}");
}

#[test]
fn a_search_ends_and_its_trials_add_up() {
    let port = free();
    let _server = Server::start(port);
    let port = port.to_string();
    let words = ["search", "--to", "127.0.0.1", "--port", &port, "--sizes", "64", "--loss", "50", "--trial", "0.05"];
    let said = lines(&run(&[&words[..], &["--confirm", "0.1", "--resolution", "20"]].concat()));
    let trials: Vec<&Value> = said.iter().filter(|line| line["kind"] == "trial").collect();
    assert!(!trials.is_empty());
    for trial in &trials {
        assert_eq!(number(trial, "size"), 64);
        assert!(number(trial, "lost") <= number(trial, "sent"));
        assert!(number(trial, "dropped") <= number(trial, "lost"), "what the socket dropped is lost: {trial}");
    }
    assert_eq!(said.iter().filter(|line| line["kind"] == "found").count(), 1);
    assert_eq!(said.last().expect("a line")["kind"], "end");
}

#[test]
fn one_way_delays_are_told_for_both_ways() {
    let port = free();
    let _server = Server::start(port);
    let port = port.to_string();
    let words = ["latency", "--to", "127.0.0.1", "--port", &port, "--sizes", "100", "--load", "0", "--duration", "0.2"];
    let said = lines(&run(&words));
    let delays: Vec<&Value> = said.iter().filter(|line| line["kind"] == "delays").collect();
    assert!(!delays.is_empty());
    for one in delays {
        for delay in one["delays_ns"].as_array().expect("a list").iter().filter_map(Value::as_i64) {
            assert!(delay > 0, "one clock for both ends: {delay}");
        }
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    for (words, part) in [
        (&["search"][..], "--to"),
        (&["stream", "--to", "nowhere", "--port", "1", "--seconds", "1"], "--to"),
        (&["serve", "--bind", "192.0.2.1"], "cannot listen"),
    ] {
        let done = run(words);
        assert!(!done.status.success());
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(said.contains(part), "{part} in {said}");
    }
}
