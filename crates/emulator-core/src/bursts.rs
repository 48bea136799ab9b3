//! Models bursts of loss as a process in time: two states that hold for times, whatever is sent meanwhile.

use crate::philox::{Purpose, Source, open_unit};

/// A Markov chain in continuous time: times between bursts and times in them are exponential (Gilbert's two states,
/// with times in place of numbers of packets). It begins in its stationary state. Stretch k is drawn from k alone.
#[derive(Clone, Debug)]
pub(crate) struct Bursts {
    source: Source,
    burst_ns: f64,
    between_ns: f64,
    /// Shares of packets that are lost in a burst and outside, as bounds for 32 random bits.
    lost_in: u64,
    lost_outside: u64,
    /// The stretch that holds, from when until when.
    number: u64,
    inside: bool,
    from: u64,
    until: u64,
}

impl Bursts {
    pub(crate) fn new(burst_us: f64, every_us: f64, inside: f64, outside: f64, source: &Source) -> Self {
        let bound = |probability: f64| (probability * 4_294_967_296.0).round() as u64;
        let mut bursts = Self {
            source: *source,
            burst_ns: burst_us * 1000.0,
            between_ns: (every_us - burst_us) * 1000.0,
            lost_in: bound(inside),
            lost_outside: bound(outside),
            number: 0,
            inside: false,
            from: 0,
            until: 0,
        };
        bursts.begin();
        bursts
    }

    /// Whether a packet is lost that enters at `since` nanoseconds after the link's zero.
    #[inline]
    pub(crate) fn loses(&mut self, since: u64, random: u32) -> bool {
        if since < self.from {
            self.begin(); // time was set to zero again
        }
        while since >= self.until {
            self.number += 1;
            self.inside = !self.inside;
            self.from = self.until;
            self.until = self.from.saturating_add(self.length());
        }
        u64::from(random) < if self.inside { self.lost_in } else { self.lost_outside }
    }

    fn begin(&mut self) {
        let share = self.burst_ns / (self.burst_ns + self.between_ns);
        self.number = 0;
        self.inside = f64::from(self.source.start(Purpose::Burst)) / 4_294_967_296.0 < share;
        // What is left of an exponential time is exponential with the same mean.
        (self.from, self.until) = (0, self.length());
    }

    fn length(&self) -> u64 {
        let mean = if self.inside { self.burst_ns } else { self.between_ns };
        let unit = open_unit(self.source.draw(Purpose::Burst, self.number, false));
        ((-mean * unit.ln()) as u64).max(1)
    }
}
