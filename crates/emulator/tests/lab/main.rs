//! The program between real network namespaces. Needs root, `ip`, `ping`, `ethtool`, `nsenter` and `unshare`;
//! without root the tests pass without doing anything. Nothing of the host's network is touched.

mod nodes;

use std::io::{Read, Write};
use std::process::Command;

use nodes::{Kind, Lab, inside, root};

/// The kinds of port.
const KINDS: [Kind; 3] = [Kind::Tap, Kind::Veth, Kind::Xdp];

fn both(stages: &str) -> String {
    format!(
        r#"{{"seed": 3, "directions": [{{"name": "ab", "from": "a.0", "stages": {stages}}},
                                       {{"name": "ba", "from": "b.0", "stages": {stages}}}]}}"#
    )
}

fn forward(stages: &str, more: &str) -> String {
    format!(r#"{{"seed": 3, "directions": [{{"name": "ab", "from": "a.0", {more} "stages": {stages}}}]}}"#)
}

#[test]
fn packets_are_delayed_both_ways() {
    for kind in KINDS.into_iter().filter(|_| root()) {
        let lab = Lab::new(kind, &["a", "b"], &both(r#"{"delay_us": 5000}"#));
        let ping = lab.answered(0, 1, 50, 0.01);
        assert!(ping.received >= 50, "{kind:?} {ping:?}");
        // Never early; the median within a millisecond also on a busy machine.
        assert!(ping.min_ms >= 10.0 && ping.min_ms < 11.0, "{kind:?} {ping:?}");
        let report = lab.finish();
        assert!(report["directions"][0]["lateness_us"]["count"].as_u64() >= Some(50));
        assert_eq!(report["directions"][0]["realised"]["delay_us"]["mean"], 5000.0);
    }
}

#[test]
fn a_recorded_pattern_is_lost_exactly() {
    for kind in KINDS.into_iter().filter(|_| root()) {
        let loss = r#"{"loss": {"kind": "pattern", "pattern": "0001"}}"#;
        let lab = Lab::new(kind, &["a", "b"], &forward(loss, ""));
        lab.ping(0, 1, 400, 0.002);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while lab.answers(0) < 300 && std::time::Instant::now() < deadline {}
        let answers = lab.answers(0);
        let report = lab.finish();
        let ab = &report["directions"][0];
        let (packets, lost) = (ab["packets"].as_u64().unwrap(), ab["dropped"]["loss"].as_u64().unwrap());
        assert_eq!((packets, lost, answers), (400, 100, 300), "{kind:?}");
        assert_eq!(ab["sent_packets"], packets - lost);
    }
}

#[test]
fn a_corrupted_packet_does_not_reach_its_program() {
    for kind in KINDS.into_iter().filter(|_| root()) {
        // Ethernet, IPv4 and ICMP headers are spared, so that it is the checksum of the payload that fails.
        let stages = r#"{"corruption": {"probability": 1, "skip_bytes": 42}}"#;
        let lab = Lab::new(kind, &["a", "b"], &forward(stages, ""));
        assert_eq!(lab.ping(0, 1, 20, 0.01).received, 0);
        assert!(lab.finish()["directions"][0]["realised"]["corrupted"].as_u64() >= Some(20));
    }
}

#[test]
fn a_stream_arrives_whole_through_loss_reordering_and_duplication() {
    let kinds = [(Kind::Super, "wire"), (Kind::Veth, "wire"), (Kind::Xdp, "wire"), (Kind::Tap, "gso")];
    for (kind, unit) in kinds.into_iter().chain([(Kind::Tap, "wire")]) {
        if !root() {
            return;
        }
        let stages = r#"{"delay_us": 500, "jitter": {"jitter_us": 200, "keep_order": false},
            "loss": {"kind": "independent", "probability": 0.003}, "duplication": {"probability": 0.01},
            "corruption": {"probability": 0.002}, "reordering": {"probability": 0.01},
            "rate": {"rate_bps": 400000000, "queue_bytes": 500000}}"#;
        let lab = Lab::new(kind, &["a", "b"], &forward(stages, &format!(r#""unit": "{unit}","#)));
        let data: Vec<u8> = (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let (listening, listens) = std::sync::mpsc::channel();
        let received = std::thread::scope(|scope| {
            let b = lab.node(1);
            let receiver = scope.spawn(move || {
                inside(b, || {
                    let listener = std::net::TcpListener::bind("10.77.0.2:5000").unwrap();
                    listening.send(()).unwrap();
                    let mut received = vec![];
                    listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
                    received
                })
            });
            listens.recv().unwrap();
            let (a, data) = (lab.node(0), &data);
            scope.spawn(move || {
                inside(a, || std::net::TcpStream::connect("10.77.0.2:5000").unwrap().write_all(data).unwrap())
            });
            receiver.join().unwrap()
        });
        assert!(received == data, "{kind:?} {unit}: {} bytes", received.len());
        let report = lab.finish();
        let ab = &report["directions"][0];
        // Super-packets as units are too few for these to be sure.
        for what in ["reordered", "duplicated", "corrupted"].into_iter().filter(|_| unit == "wire") {
            assert!(ab["realised"][what].as_u64() > Some(0), "{kind:?} {unit}: {what}");
        }
        assert_eq!((&ab["dropped"]["memory"], &ab["dropped"]["oversize"]), (&0.into(), &0.into()));
        let (units, packets) = (ab["units"].as_u64().unwrap(), ab["packets"].as_u64().unwrap());
        assert_eq!(
            packets > units + units / 2,
            !matches!(kind, Kind::Veth | Kind::Xdp),
            "{kind:?}: {packets} packets in {units} units"
        );
    }
}

#[test]
fn a_rate_is_a_rate() {
    const FRAMES: u32 = 60; // of 1514 bytes: less than the queue holds, and than a socket's buffer
    let nominal = f64::from(FRAMES) * 1514.0 * 8.0 / 100e6;
    for kind in KINDS.into_iter().filter(|_| root()) {
        let rate = r#"{"rate": {"rate_bps": 100000000, "queue_bytes": 200000}}"#;
        let lab = Lab::new(kind, &["a", "b"], &forward(rate, ""));
        let mut trains = vec![];
        // No train is faster; a busy machine may hold up some, but not all of them.
        while trains.len() < 300 && trains.iter().all(|&took| took > 1.1 * nominal) {
            trains.push(lab.train(0, 1, FRAMES));
        }
        let least = trains.iter().copied().fold(f64::INFINITY, f64::min);
        assert!((nominal..1.1 * nominal).contains(&least), "{kind:?}: {least} s, not {nominal} s");
        let report = lab.finish();
        assert!(report["directions"][0]["realised"]["queue_peak_bytes"].as_u64() <= Some(200_000));
    }
}

#[test]
fn three_nodes_share_a_link() {
    for kind in KINDS.into_iter().filter(|_| root()) {
        let config = r#"{"directions": [{"name": "to c", "to": "c.0", "stages": {"delay_us": 20000}}]}"#;
        let lab = Lab::new(kind, &["a", "b", "c"], config);
        for (from, to, least, most) in [(0, 1, 0.0, 10.0), (0, 2, 20.0, 30.0), (2, 1, 20.0, 30.0)] {
            let ping = lab.answered(from, to, 10, 0.01);
            assert!(ping.received >= 10 && ping.min_ms >= least && ping.min_ms < most, "{kind:?} {ping:?}");
        }
        lab.finish();
    }
}

#[test]
fn xdp_is_refused_where_it_does_not_fit_and_the_program_says_what_carries_instead() {
    if !root() {
        return;
    }
    let lab = Lab::new(Kind::Queues, &["a", "b"], &forward("{}", ""));
    assert_eq!(lab.datapaths.len(), 2);
    for datapath in &lab.datapaths {
        assert!(datapath.starts_with("af_packet (no af_xdp: port a.0: a.0 has 2 receive queues"), "{datapath}");
    }
    assert!(lab.answered(0, 1, 5, 0.01).received >= 5);
    lab.finish();
}

#[test]
fn packets_that_came_while_the_program_stood_still_are_carried_or_counted() {
    for kind in [Kind::Xdp].into_iter().filter(|_| root()) {
        let mut lab = Lab::new(kind, &["a", "b"], &forward(r#"{"delay_us": 100}"#, ""));
        assert_eq!(lab.datapaths, ["af_xdp"; 2], "this machine refuses XDP");
        assert!(lab.answered(0, 1, 2, 0.05).received >= 2);
        lab.signal(libc::SIGSTOP);
        const SENT: u64 = 9_000;
        let a = lab.node(0);
        let send = move || {
            let socket = std::net::UdpSocket::bind("10.77.0.1:0").unwrap();
            for _ in 0..SENT {
                socket.send_to(&[7; 100], "10.77.0.2:9").unwrap();
            }
        };
        std::thread::spawn(move || inside(a, send)).join().unwrap();
        lab.signal(libc::SIGCONT);
        let counts = |report: &serde_json::Value| {
            let (carried, dropped) = (&report["directions"][0]["sent_packets"], &report["ports"][0]["socket_dropped"]);
            (carried.as_u64().unwrap(), dropped.as_u64().unwrap())
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        loop {
            let (carried, dropped) = counts(&lab.report());
            if carried + dropped >= SENT || std::time::Instant::now() >= deadline {
                break;
            }
        }
        let report = lab.finish();
        let port = &report["ports"][0];
        let (carried, dropped) = counts(&report);
        assert!(dropped >= SENT - 4096 - 64, "{port}");
        // Pings and neighbour discovery are carried too.
        assert!((SENT..SENT + 30).contains(&(carried + dropped)), "{carried} carried, {port}");
        assert_eq!((&port["rx_dropped"], &port["refused"]), (&0.into(), &0.into()), "counted once");
    }
}

#[test]
fn zero_starts_the_time_again_and_sigterm_ends_it() {
    if !root() {
        return;
    }
    // Light for three seconds, then dark for an hour.
    let dark = r#"{"directions": [{"name": "all", "blackouts": [{"start_us": 3000000, "length_us": 3600000000}]}]}"#;
    let mut lab = Lab::new(Kind::Tap, &["a", "b"], dark);
    std::thread::sleep(std::time::Duration::from_millis(3100));
    assert_eq!(lab.ping(0, 1, 5, 0.01).received, 0);
    lab.zero();
    assert!(lab.answered(0, 1, 5, 0.01).received >= 5);
    lab.terminate();
    let report = lab.finish();
    assert_eq!(report["last"], true);
    assert!(report["directions"][0]["dropped"]["blackout"].as_u64() >= Some(5));
}

#[test]
fn what_cannot_be_delivered_is_refused_with_its_field() {
    let check = |ports: &[&str], config: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tunnelmark-emulator"))
            .args(["--config", "-", "--check"])
            .args(ports)
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(child.stdin.take().unwrap(), "{config}").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let reordering = r#"{"directions": [{"name": "d", "stages": {"reordering": {"probability": 0.1}}}]}"#;
    assert!(check(&[], reordering).contains("directions[0].stages.reordering"));
    let unit = r#"{"directions": [{"name": "d", "unit": "gso"}]}"#;
    assert!(check(&["--xdp", "a", "--xdp", "b"], unit).contains("directions[0].unit"));
}
