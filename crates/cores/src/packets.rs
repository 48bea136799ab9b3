//! Takes the yardsticks that need a network: a TUN device and a veth pair, in network namespaces of their own thread.
//!
//! Nothing of the machine's own network is seen or touched, and all of it goes with the thread.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::sys;
use crate::yardstick::{Length, PACKET, SLICE, slices};

/// Packets between two looks at the clock; the socket of a default kernel (212,992 bytes) holds them all.
const BATCH: usize = 32;
/// Bytes of an IPv4 and a UDP header.
const HEADERS: usize = 28;
/// Bytes of UDP payload in a small packet.
const SMALL: usize = 64;
/// How long a packet may be on its way: the call that sends it delivers it, but a busy kernel delivers it later.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a new pair may drop what it is given: its ends carry once a worker of the kernel has seen that both are up.
const AGAIN: Duration = Duration::from_millis(5);
/// Of RFC 2544's networks for tests of devices.
const HERE: &str = "198.18.0.1";
const THERE: &str = "198.18.0.2";
/// The far end's address on the link, from those that anyone may give. It is set without asking the far end, because a
/// lost answer costs a second.
const FAR: &str = "02:00:00:00:00:02";

/// Nanoseconds for a full packet read from a TUN device, and for one written to the device and received by a socket.
pub fn tun(long: u64) -> Result<(Length, Length)> {
    apart(move || {
        sys::leave_network()?;
        let mut device = sys::tun("yard")?;
        ip(&format!("address add {HERE}/30 dev yard\nlink set yard mtu {PACKET} up\n"))?;
        let socket = UdpSocket::bind((HERE, 9000))?;
        socket.connect((THERE, 9001))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        exchange(&mut device, &socket)?; // the first time is not like the others
        let found = slices(long, || {
            let (begun, mut took, mut packets) = (sys::now(), (0, 0), 0);
            while packets == 0 || sys::now() - begun < SLICE {
                let (reading, writing) = exchange(&mut device, &socket)?;
                (took.0, took.1, packets) = (took.0 + reading, took.1 + writing, packets + BATCH);
            }
            Ok((took.0 as f64 / packets as f64, took.1 as f64 / packets as f64))
        })?;
        let (reads, writes) = found.into_iter().unzip();
        Ok((Length::of(reads), Length::of(writes)))
    })
}

/// Sends a batch into the device, reads it there, and writes it back as the answers. Returns the nanoseconds of all
/// reads and of all writes.
fn exchange(device: &mut File, socket: &UdpSocket) -> Result<(u64, u64)> {
    let (payload, mut packets) = ([7; PACKET - HEADERS], [[0; PACKET + 1]; BATCH]);
    for _ in 0..BATCH {
        socket.send(&payload)?;
    }
    let begun = sys::now();
    for packet in &mut packets {
        while device.read(packet)? != PACKET {} // the kernel's own, such as IPv6's, are shorter
    }
    let read = sys::now();
    for packet in &mut packets {
        turned(&mut packet[..PACKET]);
    }
    let turned = sys::now();
    for packet in &packets {
        device.write_all(&packet[..PACKET])?;
    }
    let written = sys::now();
    let mut answer = [0; PACKET];
    for _ in 0..BATCH {
        socket.recv(&mut answer)?;
    }
    Ok((read - begun, written - turned))
}

/// Sends a packet back where it comes from: addresses and ports change places, which leaves both checksums right.
fn turned(packet: &mut [u8]) {
    for place in 0..4 {
        packet.swap(12 + place, 16 + place);
    }
    for place in 0..2 {
        packet.swap(20 + place, 22 + place);
    }
}

/// Nanoseconds for a small UDP packet from a socket through a veth pair to another namespace's socket, by one thread.
pub fn veth(long: u64) -> Result<Length> {
    apart(move || {
        sys::leave_network()?;
        let home = File::open("/proc/thread-self/ns/net")?;
        sys::leave_network()?;
        let place = format!("/proc/{}/fd/{}", std::process::id(), home.as_raw_fd());
        ip(&format!(
            "link add far address {FAR} type veth peer name near netns {place}\naddress add {THERE}/30 dev far\nlink set far up\n"
        ))?;
        let (from, to) = {
            let to = UdpSocket::bind(("0.0.0.0", 9000))?;
            sys::enter_network(&home)?;
            ip(&format!(
                "address add {HERE}/30 dev near\nlink set near up\nneigh add {THERE} lladdr {FAR} dev near nud permanent\n"
            ))?;
            (UdpSocket::bind((HERE, 9001))?, to)
        };
        from.connect((THERE, 9000))?;
        until_it_carries(&from, &to)?;
        to.set_read_timeout(Some(PATIENCE))?;
        let found = slices(long, || {
            let (begun, mut packets) = (sys::now(), 0);
            while packets == 0 || sys::now() - begun < SLICE {
                pass(&from, &to, BATCH)?;
                packets += BATCH;
            }
            Ok((sys::now() - begun) as f64 / packets as f64)
        })?;
        Ok(Length::of(found))
    })
}

/// Sends a packet again and again until one arrives, because a new pair loses the first.
fn until_it_carries(from: &UdpSocket, to: &UdpSocket) -> Result<()> {
    let (begun, mut packet) = (sys::now(), [0; SMALL]);
    to.set_read_timeout(Some(AGAIN))?;
    loop {
        from.send(&packet)?;
        match to.recv(&mut packet) {
            Ok(_) => return Ok(()),
            Err(why) if sys::now() - begun > PATIENCE.as_nanos() as u64 => return Err(why),
            Err(_) => (),
        }
    }
}

fn pass(from: &UdpSocket, to: &UdpSocket, count: usize) -> Result<()> {
    let mut packet = [7; SMALL];
    for _ in 0..count {
        from.send(&packet)?;
    }
    for _ in 0..count {
        to.recv(&mut packet)?;
    }
    Ok(())
}

/// Does something on a thread of its own, which may change its network namespace; on the core of the caller.
fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = std::thread::spawn(work).join().map_err(|_| Error::other("the measurement broke"))?;
    done.map_err(|why| match why.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Error::other("a packet did not arrive"),
        _ => why,
    })
}

/// Has ip(8) carry out these lines in this thread's network namespace.
fn ip(lines: &str) -> Result<()> {
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|why| Error::other(format!("ip: {why}")))?;
    child.stdin.take().expect("it was piped").write_all(lines.as_bytes())?;
    let done = child.wait_with_output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(Error::other(format!("ip: {}", String::from_utf8_lossy(&done.stderr).trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_turned_in_its_two_headers_and_nowhere_else() {
        let mut packet: Vec<u8> = (0..40).collect();
        turned(&mut packet);
        assert_eq!(packet[..12], (0..12).collect::<Vec<u8>>());
        assert_eq!(packet[12..20], [16, 17, 18, 19, 12, 13, 14, 15]);
        assert_eq!(packet[20..24], [22, 23, 20, 21]);
        assert_eq!(packet[24..], (24..40).collect::<Vec<u8>>());
    }
}
