//! Sends small frames as fast as one core can, for measuring what the link carries: `flood INTERFACE SECONDS`.
//! Prints frames sent. Their EtherType (0x88b5, for experiments) belongs to no protocol, so receivers drop them early.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

const BATCH: usize = 32;
const PACKET_QDISC_BYPASS: i32 = 20;
const SOL_PACKET: i32 = 263;

fn main() {
    let mut words = std::env::args().skip(1);
    let (interface, seconds) = (words.next().expect("an interface"), words.next().expect("seconds"));
    let one = 1i32;
    let name = std::ffi::CString::new(interface).unwrap();
    // SAFETY: takes numbers only; a new descriptor is ours.
    let fd = unsafe { OwnedFd::from_raw_fd(libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)) };
    // SAFETY: an all-zero sockaddr_ll is valid; the name ends in 0.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    // SAFETY: the name ends in 0.
    address.sll_ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) } as i32;
    // SAFETY: address and option are valid for their sizes.
    unsafe {
        assert_eq!(libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as u32), 0);
        libc::setsockopt(fd.as_raw_fd(), SOL_PACKET, PACKET_QDISC_BYPASS, (&raw const one).cast(), 4);
    }
    let mut frame = [0u8; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    let mut vector = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
    // SAFETY: an all-zero mmsghdr is valid.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
    for message in &mut messages {
        message.msg_hdr.msg_iov = &raw mut vector;
        message.msg_hdr.msg_iovlen = 1;
    }
    let end = Instant::now() + Duration::from_secs_f64(seconds.parse().expect("seconds"));
    let mut sent = 0u64;
    while Instant::now() < end {
        // SAFETY: messages, vector and frame live to the end of the call.
        let now = unsafe { libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), BATCH as u32, 0) };
        sent += now.max(0) as u64;
    }
    println!("{sent}");
}
