//! A network link without I/O, in virtual time.
//!
//! Nothing here reads a clock, a file or a socket. Whoever has packets offers their lengths with the time,
//! and takes the departures that are due; so the same code runs under a test at 10^6 packets a second
//! and in the emulator under real traffic. Time is nanoseconds in a `u64` from a zero the caller chooses.
#![forbid(unsafe_code)]

pub mod config;
