//! Loads the program that hands an interface's packets to an AF_XDP socket: five instructions, loaded by bpf(2) and
//! attached by a link, so that the program goes when this process goes.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use crate::sys::{checked, owned};

/// `enum bpf_cmd` and its companions in `include/uapi/linux/bpf.h`.
const MAP_CREATE: i32 = 0;
const MAP_UPDATE_ELEM: i32 = 2;
const PROG_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const FUNC_REDIRECT_MAP: i32 = 51;
const PSEUDO_MAP_FD: u8 = 1;
/// In the driver, or not at all: the generic hook, behind the driver, has no advantage over a packet socket.
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// A program that is attached for as long as this lives.
pub struct Redirect {
    _link: OwnedFd,
    _map: OwnedFd,
}

impl Redirect {
    /// Has every packet that enters an interface on its first queue go to a socket that is bound there.
    pub fn attach(interface: u32, socket: BorrowedFd<'_>) -> Result<Self> {
        // map_type, key_size, value_size, max_entries
        let map = command(MAP_CREATE, "bpf(2), map", &[words([MAP_TYPE_XSKMAP, 4]), words([4, 1])])?;
        let (key, value) = (0u32, socket.as_raw_fd());
        let update = [map.as_raw_fd() as u64, (&raw const key) as u64, (&raw const value) as u64, 0];
        // SAFETY: key and value live to the end of the call.
        unsafe { bpf(MAP_UPDATE_ELEM, &update) }.map_err(|error| named("bpf(2), socket into map", &error))?;

        let program = program(map.as_raw_fd());
        let licence = c"Apache-2.0";
        // prog_type, insn_cnt; insns; license
        let load = [words([PROG_TYPE_XDP, program.len() as u32]), program.as_ptr() as u64, licence.as_ptr() as u64];
        let program = command(PROG_LOAD, "bpf(2), program", &load)?;
        // prog_fd, target_ifindex; attach_type, flags
        let create = [words([program.as_raw_fd() as u32, interface]), words([ATTACH_XDP, XDP_FLAGS_DRV_MODE])];
        let link = command(LINK_CREATE, "bpf(2), XDP in the driver", &create)?;
        Ok(Self { _link: link, _map: map })
    }
}

/// In C: `return bpf_redirect_map(&map, ctx->rx_queue_index, XDP_ABORTED);`
fn program(map: i32) -> [u64; 6] {
    let instruction = |code: u8, destination: u8, source: u8, offset: i16, value: i32| {
        let registers = source << 4 | destination;
        let [low, high] = offset.to_le_bytes();
        let [a, b, c, d] = value.to_le_bytes();
        u64::from_ne_bytes([code, registers, low, high, a, b, c, d])
    };
    [
        instruction(0x61, 2, 1, 16, 0),              // r2 = ctx->rx_queue_index
        instruction(0x18, 1, PSEUDO_MAP_FD, 0, map), // r1 = map, in two halves
        instruction(0, 0, 0, 0, 0),
        instruction(0xb7, 3, 0, 0, 0),                 // r3 = XDP_ABORTED
        instruction(0x85, 0, 0, 0, FUNC_REDIRECT_MAP), // r0 = bpf_redirect_map(r1, r2, r3)
        instruction(0x95, 0, 0, 0, 0),                 // return r0
    ]
}

/// Two 32-bit fields of `union bpf_attr` next to each other.
fn words([first, second]: [u32; 2]) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// A command that returns a descriptor; an error says which it was.
fn command(number: i32, name: &str, attributes: &[u64]) -> Result<OwnedFd> {
    // SAFETY: what the attributes point to lives to the end of the call, and is only read; a new descriptor is ours.
    unsafe { bpf(number, attributes).and_then(|fd| owned(fd as i32)) }.map_err(|error| named(name, &error))
}

/// # Safety
/// Addresses among the attributes must be valid for what the command does with them.
unsafe fn bpf(number: i32, attributes: &[u64]) -> Result<i64> {
    // Fields that an old kernel does not know must be 0; those that are left out are.
    let mut all = [0u64; 16];
    all[..attributes.len()].copy_from_slice(attributes);
    // SAFETY: the attributes are valid for their size; the rest is the caller's promise.
    checked(unsafe { libc::syscall(libc::SYS_bpf, number, all.as_ptr(), size_of_val(&all)) })
}

fn named(name: &str, error: &Error) -> Error {
    Error::new(error.kind(), format!("{name}: {error}"))
}
