//! UDP sockets with large buffers, sending and receiving many datagrams a call.

use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// The bytes of IP and UDP header before a payload.
pub fn headers(address: IpAddr) -> usize {
    if address.is_ipv4() { 28 } else { 48 }
}

/// A socket bound to that address, with buffers of `buffer` bytes as far as the host allows.
pub fn bound(address: SocketAddr, buffer: usize) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, buffer as i32)?;
    set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, buffer as i32)?;
    Ok(socket)
}

/// A socket with any port of its own that talks to `peer` only.
pub fn connected(peer: SocketAddr, buffer: usize) -> io::Result<UdpSocket> {
    let any = if peer.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let socket = bound(SocketAddr::new(any, 0), buffer)?;
    socket.connect(peer)?;
    Ok(socket)
}

/// The MTU of the path of a connected socket, as far as the kernel knows it: the interface's at first.
pub fn path_mtu(socket: &UdpSocket, v4: bool) -> io::Result<usize> {
    let (level, name) = if v4 { (libc::IPPROTO_IP, libc::IP_MTU) } else { (libc::IPPROTO_IPV6, libc::IPV6_MTU) };
    Ok(get(socket, level, name)? as usize)
}

/// Whether a datagram that does not fit the path's MTU is refused here (`true`) or split, as is usual.
pub fn refuse_to_split(socket: &UdpSocket, v4: bool, refuse: bool) -> io::Result<()> {
    let (level, name) =
        if v4 { (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER) } else { (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER) };
    // IPv6 has the same two numbers under other names.
    set(socket, level, name, if refuse { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_WANT })
}

/// How many datagrams this network namespace has split into fragments to send them; none if the kernel does not tell.
pub fn split_so_far(v4: bool) -> Option<u64> {
    if !v4 {
        let text = std::fs::read_to_string("/proc/net/snmp6").ok()?;
        return text.lines().find_map(|line| line.strip_prefix("Ip6FragOKs")?.trim().parse().ok());
    }
    let text = std::fs::read_to_string("/proc/net/snmp").ok()?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let place = lines.next()?.split(' ').position(|name| name == "FragOKs")?;
    lines.next()?.split(' ').nth(place)?.parse().ok()
}

/// How many datagrams this socket has dropped because its buffer was full.
pub fn dropped(socket: &UdpSocket) -> io::Result<u64> {
    const DROPS: usize = 8; // SK_MEMINFO_DROPS
    let mut found = [0u32; 9];
    let mut size = mem::size_of_val(&found) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes to `found`.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            found.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    if done == 0 { Ok(u64::from(found[DROPS])) } else { Err(io::Error::last_os_error()) }
}

/// Sets an option of a socket that is a number.
pub fn set(socket: &UdpSocket, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: `value` lives through the call, and its size is given.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            mem::size_of::<i32>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn get(socket: &UdpSocket, level: i32, name: i32) -> io::Result<i32> {
    let mut value = 0i32;
    let mut size = mem::size_of::<i32>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes to `value`.
    let done = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut size) };
    if done == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}
