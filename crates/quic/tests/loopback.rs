//! The two programs against each other on loopback.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tunnelmark-quic");

struct Server {
    child: Child,
    address: String,
    said: BufReader<ChildStderr>,
}

impl Server {
    fn start(host: &str, options: &[&str]) -> Self {
        let any = if host.contains(':') { format!("[{host}]:0") } else { format!("{host}:0") };
        let mut child = Command::new(PROGRAM)
            .args(["server", "--listen", &any])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("text");
        let address = line.trim_end().strip_prefix("listening on ").expect("where it listens").to_owned();
        Self { child, address, said }
    }

    /// What it says next.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    fn end(mut self) -> Value {
        let ended = Command::new("kill").arg(self.child.id().to_string()).status().expect("kill runs");
        assert!(ended.success());
        let mut said = String::new();
        self.child.stdout.take().expect("it is piped").read_to_string(&mut said).expect("text");
        assert!(self.child.wait().expect("it ends").success());
        serde_json::from_str(&said).expect("one JSON object")
    }
}

fn client(address: &str, options: &[&str]) -> Output {
    Command::new(PROGRAM).args(["client", "--connect", address]).args(options).output().expect("the client starts")
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {value}"))
}

#[test]
fn a_download_is_counted_alike_at_both_ends() {
    let server = Server::start("127.0.0.1", &[]);
    let output = client(&server.address, &["--duration", "0.5", "--handshakes", "3", "--connections", "2"]);
    assert!(output.status.success(), "{output:?}");
    let (got, sent) = (report(&output), server.end());
    assert_eq!(got["handshakes"].as_array().map(Vec::len), Some(3));
    for handshake in got["handshakes"].as_array().expect("a list") {
        assert!(0.0 < number(handshake, "/connect_ms"));
        assert!(number(handshake, "/connect_ms") < number(handshake, "/first_byte_ms"));
    }
    assert_eq!(got["arrived"].as_array().map(Vec::len), Some(6)); // the beginning, and each 0.1 s
    assert_eq!(sent["congestion_control"], serde_json::json!(["cubic", "cubic"]));
    let (bytes, lost) = (number(&got, "/udp_received/bytes"), number(&sent, "/connections/0/lost"));
    assert!(bytes <= number(&sent, "/udp_sent/bytes"));
    if lost + number(&sent, "/connections/1/lost") == 0.0 {
        assert!(bytes > 0.999 * number(&sent, "/udp_sent/bytes"));
    }
    let read: f64 = (0..2).map(|at| number(&got, &format!("/connections/{at}/read"))).sum();
    assert!(0.0 < read && read < bytes - 30.0 * number(&got, "/udp_received/datagrams"));
    assert!(number(&got, "/arrived/5/bytes") <= read);
    assert!(number(&got, "/arrived/5/cpu") > number(&got, "/arrived/0/cpu"));
    assert_eq!(number(&sent, "/connections/0/mtu"), 1452.0);
}

#[test]
fn without_gso_every_call_sends_one_datagram() {
    let server = Server::start("::1", &["--gso", "false"]);
    assert!(client(&server.address, &["--duration", "0.2", "--handshakes", "1"]).status.success());
    let sent = server.end();
    assert_eq!(sent["settings"]["gso"], false);
    assert_eq!(number(&sent, "/udp_sent/calls"), number(&sent, "/udp_sent/datagrams"));
}

#[test]
fn a_client_without_a_server_says_so_within_its_patience() {
    let began = Instant::now();
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a free port"); // bound, and no one answers there
    let address = silent.local_addr().expect("it has an address").to_string();
    let output = client(&address, &["--patience", "0.5"]);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(report(&output)["error"], "connection 1 was not answered within 0.5 s of the start");
}

#[test]
fn a_server_that_dies_ends_the_download() {
    let mut server = Server::start("127.0.0.1", &[]);
    let address = server.address.clone();
    let downloading = std::thread::spawn(move || client(&address, &["--duration", "1"]));
    assert_eq!(server.line(), "serving a download");
    server.child.kill().expect("it is ours");
    server.child.wait().expect("it ends");
    let output = downloading.join().expect("no panic");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(report(&output)["error"], "the path no longer answered within 5 s of the download");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let server = Server::start("127.0.0.1", &[]);
    let output = Command::new(PROGRAM).args(["server", "--listen", &server.address]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&server.address) && said.contains("in use"), "{said}");
    server.end();
}

#[test]
fn wrong_arguments_are_refused() {
    for wrong in [&["--duration", "0"], &["--handshakes", "0"], &["--connections", "0"], &["--gso", "maybe"]] {
        assert_eq!(client("127.0.0.1:1", wrong).status.code(), Some(2), "{wrong:?}");
    }
}
