//! A mesh of three over UDP on the loopback device, a socket pair in place of each TUN device.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use anchor::config::{Cipher, Config, Peer};
use anchor::forward::{Peers, Way};

const NODES: u32 = 3;
const HANGS: Duration = Duration::from_secs(20);

struct Node {
    way: Way,
    /// The kernel's side of the pair in place of the TUN device, and the program's side, which lives as long.
    kernel: UnixDatagram,
    _program: UnixDatagram,
    address: SocketAddr,
}

fn overlay(number: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 60, 0, number as u8 + 1)
}

fn key(from: u32, to: u32) -> Option<String> {
    Some(format!("{:02x}", 16 * from + to).repeat(32))
}

fn mesh(cipher: Cipher) -> Vec<Node> {
    let sockets: Vec<UdpSocket> = (0..NODES).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<SocketAddr> = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
    let mut nodes = Vec::new();
    for (number, socket) in (0..).zip(sockets) {
        let peers = (0..NODES).filter(|&other| other != number).map(|other| Peer {
            number: other,
            overlay: overlay(other),
            endpoint: addresses[other as usize],
            send: key(number, other),
            receive: key(other, number),
        });
        let address = addresses[number as usize];
        let config = Config {
            interface: "anchor0".to_owned(),
            listen: address,
            cipher,
            number,
            receive_buffer: None,
            peers: peers.collect(),
        };
        let (kernel, program) = UnixDatagram::pair().unwrap();
        for one in [&kernel, &program] {
            one.set_nonblocking(true).unwrap();
        }
        socket.set_nonblocking(true).unwrap();
        let way = Way::new(program.as_raw_fd(), socket, Peers::new(&config, 1).unwrap());
        nodes.push(Node { way, kernel, _program: program, address });
    }
    nodes
}

/// An IPv4 packet with nothing right in it but its version and its destination.
fn packet(to: Ipv4Addr, size: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..size).map(|place| (place * 7) as u8).collect();
    bytes[0] = 0x45;
    bytes[16..20].copy_from_slice(&to.octets());
    bytes
}

/// What comes out at a node's TUN device next.
fn next(node: &mut Node) -> Vec<u8> {
    let mut buffer = vec![0; 65535];
    let begun = Instant::now();
    loop {
        node.way.receive(1).unwrap();
        if let Ok(size) = node.kernel.recv(&mut buffer) {
            buffer.truncate(size);
            return buffer;
        }
        assert!(begun.elapsed() < HANGS, "nothing arrived");
        std::thread::yield_now();
    }
}

#[test]
fn every_node_reaches_every_other_by_its_address() {
    for cipher in [Cipher::None, Cipher::Chacha20Poly1305] {
        let mut nodes = mesh(cipher);
        for from in 0..NODES {
            for to in (0..NODES).filter(|&to| to != from) {
                for size in [20, 1420] {
                    let sent = packet(overlay(to), size);
                    nodes[from as usize].kernel.send(&sent).unwrap();
                    assert_eq!(nodes[from as usize].way.send(8).unwrap(), 1);
                    assert_eq!(next(&mut nodes[to as usize]), sent, "{cipher:?} {from}>{to}");
                }
            }
        }
    }
}

#[test]
fn order_is_kept_and_a_turn_ends() {
    for cipher in [Cipher::None, Cipher::Chacha20Poly1305] {
        let mut nodes = mesh(cipher);
        for size in 100..105 {
            nodes[0].kernel.send(&packet(overlay(1), size)).unwrap();
        }
        assert_eq!(nodes[0].way.send(3).unwrap(), 3);
        assert_eq!(nodes[0].way.send(3).unwrap(), 2);
        for size in 100..105 {
            assert_eq!(next(&mut nodes[1]).len(), size);
        }
    }
}

#[test]
fn packets_to_nobody_are_dropped_and_the_next_one_passes() {
    let mut nodes = mesh(Cipher::Chacha20Poly1305);
    let mut six = packet(overlay(1), 60);
    six[0] = 0x60;
    let last = packet(overlay(1), 61);
    for one in [&six, &packet(Ipv4Addr::new(224, 0, 0, 22), 40), &packet(overlay(0), 40), &last] {
        nodes[0].kernel.send(one).unwrap();
    }
    nodes[0].kernel.send(&[0x45; 3]).unwrap();
    assert_eq!(nodes[0].way.send(8).unwrap(), 5);
    assert_eq!(next(&mut nodes[1]), last);
}

#[test]
fn what_is_not_from_a_peer_is_dropped() {
    for cipher in [Cipher::None, Cipher::Chacha20Poly1305] {
        let mut nodes = mesh(cipher);
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        for size in [0, 10, 40, 1500] {
            stranger.send_to(&vec![0x45; size], nodes[1].address).unwrap();
        }
        let sent = packet(overlay(1), 99);
        nodes[0].kernel.send(&sent).unwrap();
        nodes[0].way.send(1).unwrap();
        assert_eq!(next(&mut nodes[1]), sent, "the first that comes out");
    }
}

#[test]
fn plain_datagrams_are_the_packets_and_sealed_ones_hide_them() {
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_read_timeout(Some(HANGS)).unwrap();
    for (cipher, more) in [(Cipher::None, 0), (Cipher::Chacha20Poly1305, 32)] {
        let peer = Peer {
            number: 1,
            overlay: overlay(1),
            endpoint: listener.local_addr().unwrap(),
            send: key(0, 1),
            receive: key(1, 0),
        };
        let listen = "127.0.0.1:0".parse().unwrap();
        let config = Config {
            interface: "anchor0".to_owned(),
            listen,
            cipher,
            number: 0,
            receive_buffer: None,
            peers: vec![peer],
        };
        let socket = UdpSocket::bind(listen).unwrap();
        let (kernel, program) = UnixDatagram::pair().unwrap();
        let mut way = Way::new(program.as_raw_fd(), socket, Peers::new(&config, 1).unwrap());
        let sent = packet(overlay(1), 1000);
        kernel.send(&sent).unwrap();
        way.send(1).unwrap();
        let mut datagram = [0; 2000];
        let size = listener.recv(&mut datagram).unwrap();
        assert_eq!(size, sent.len() + more);
        let seen = datagram[..size].windows(100).any(|window| window == &sent[100..200]);
        assert_eq!(seen, cipher == Cipher::None);
    }
}

#[test]
fn a_small_receive_buffer_loses_what_comes_while_nobody_reads() {
    let (one, other) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    one.set_nonblocking(true).unwrap();
    anchor::forward::receive_buffer(&one, 1).unwrap(); // the kernel gives its least
    for _ in 0..100 {
        other.send_to(&[0; 1400], one.local_addr().unwrap()).unwrap();
    }
    let mut datagram = [0; 2000];
    let kept = (0..100).take_while(|_| one.recv(&mut datagram).is_ok()).count();
    assert!((1..20).contains(&kept), "{kept}");
}
