//! A network link without I/O, in virtual time.
//!
//! Nothing here reads a clock, a file or a socket. The caller offers the lengths of its packets with the time,
//! and takes the departures that are due. So the same code runs under a test at 10^6 packets a second
//! and in the emulator under real traffic. Time is nanoseconds in a `u64` from a zero the caller chooses.
//!
//! ```
//! use emulator_core::{Outcome, Link, config::Config};
//!
//! let json = r#"{"directions": [{"name": "a to b", "stages": {"delay_us": 10000}}]}"#;
//! let config: Config = serde_json::from_str(json).unwrap();
//! let mut link = Link::new(&config, 0).unwrap();
//! link.offer(5_000, 1500, 1, 42);
//! assert_eq!(link.next_departure(), Some(10_005_000));
//! let departure = link.take(10_005_000).unwrap();
//! assert_eq!((departure.handle, departure.outcome), (42, Outcome::Sent));
//! ```
#![forbid(unsafe_code)]

mod bernoulli;
mod bursts;
mod codel;
pub mod config;
mod decide;
mod delay_line;
pub mod distribution;
mod jitter;
mod link;
mod loss;
pub mod normal;
mod phase;
pub mod philox;
mod rate;
mod schedule;
pub mod stats;
mod wander;

pub use link::{Departure, Link, Outcome};
