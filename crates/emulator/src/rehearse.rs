//! Rehearses a link: what a configuration does to a schedule of packets, in virtual time and without ports.

use std::time::Duration;

use emulator_core::config::{Config, Invalid};
use emulator_core::{Link, stats::Stats};
use serde::Serialize;

/// Packets at equal distances: every `interval` one of `bytes`, handed over in `pieces`, `count` times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Schedule {
    pub interval_ns: u64,
    pub bytes: u32,
    pub pieces: u32,
    pub count: u64,
    /// Losses within this time of the first belong to one loss event (RFC 5348, 5.2, where it is a round trip).
    pub event_us: u64,
}

/// What became of a schedule in one direction.
#[derive(Serialize)]
pub struct Rehearsed<'a> {
    direction: &'a str,
    schedule: Schedule,
    seconds: f64,
    loss_events: u64,
    realised: Stats,
}

impl Schedule {
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("--rehearse {text}: must be INTERVAL_NS,BYTES,PIECES,COUNT,EVENT_US, pieces from 1 on");
        let numbers: Vec<u64> = text.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let [interval_ns, bytes, pieces, count, event_us] = numbers[..] else { return Err(wrong()) };
        let (Ok(bytes), Ok(pieces @ 1..)) = (u32::try_from(bytes), u32::try_from(pieces)) else { return Err(wrong()) };
        Ok(Self { interval_ns, bytes, pieces, count, event_us })
    }

    /// Sends the schedule through the direction at `place`, from the link's zero on.
    pub fn carry_out<'a>(&self, config: &'a Config, place: usize) -> Result<Rehearsed<'a>, Invalid> {
        let mut link = Link::new(config, place)?;
        let (mut events, mut event_ends) = (0, 0);
        for number in 0..self.count {
            let now = number.saturating_mul(self.interval_ns);
            while link.take(now).is_some() {}
            for piece in 0..self.pieces {
                // What does not divide goes with the first piece, as with IP fragments.
                let rest = if piece == 0 { self.bytes % self.pieces } else { 0 };
                if link.offer(now, self.bytes / self.pieces + rest, 1, number) == 0 && now >= event_ends {
                    events += 1;
                    event_ends = now.saturating_add(self.event_us * 1000).max(now + 1);
                }
            }
        }
        while let Some(at) = link.next_departure() {
            while link.take(at).is_some() {}
        }
        Ok(Rehearsed {
            direction: &config.directions[place].name,
            schedule: *self,
            seconds: Duration::from_nanos(self.count.saturating_mul(self.interval_ns)).as_secs_f64(),
            loss_events: events,
            realised: link.stats(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_one_round_trip_are_one_event_however_many_pieces() {
        let json = r#"{"directions": [{"name": "d", "stages": {"delay_us": 1000,
            "loss": {"kind": "pattern", "pattern": "1100000011"}}}]}"#;
        let config: Config = serde_json::from_str(json).unwrap();
        // Every tenth packet of 2 pieces: the pattern is met by five packets, of which the first and the last are lost.
        let schedule = Schedule::parse("1000000,1501,2,50,500").unwrap();
        let found = schedule.carry_out(&config, 0).unwrap();
        assert_eq!((found.loss_events, found.realised.dropped.loss), (20, 40));
        assert_eq!(found.realised.offered_bytes, 50 * 1501);
        let longer = Schedule { event_us: 2000, ..schedule }.carry_out(&config, 0).unwrap();
        assert_eq!(longer.loss_events, 11);
    }

    #[test]
    fn a_schedule_that_is_none_is_refused() {
        for wrong in ["", "1,2,3", "1,2,0,4,5", "1,2,3,4,x", "1,99999999999,1,1,1"] {
            assert!(Schedule::parse(wrong).is_err(), "{wrong}");
        }
    }
}
