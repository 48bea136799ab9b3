//! The stated model in plain code, for all stages but CoDel and traces.

use emulator_core::config::{Direction, Distribution, Loss};
use emulator_core::philox::{Purpose, Source, open_unit};

use super::reference::{Left, Offered};

struct Markov(Option<bool>);

impl Markov {
    fn fires(&mut self, p: f64, c: f64, random: u32) -> bool {
        let p = match self.0 {
            None => p,
            Some(true) => p + c * (1.0 - p),
            Some(false) => p * (1.0 - c),
        };
        let strike = u64::from(random) < (p * 4_294_967_296.0).round() as u64;
        self.0 = Some(strike);
        strike
    }
}

/// All departures in their order.
pub(crate) fn run(d: &Direction, s: Source, packets: &[Offered]) -> Vec<Left> {
    let st = &d.stages;
    let (mut loss, mut dup, mut corrupt, mut reorder) = (Markov(None), Markov(None), Markov(None), Markov(None));
    let mut gap = 0;
    // Time at which each accepted packet starts and is through, in their order, with its length.
    let mut served: Vec<(u64, u64, u32)> = vec![];
    let mut owed = 0;
    let mut order_at = 0;
    let mut left: Vec<(u64, usize, Left)> = vec![];
    for (n, &(now, len)) in packets.iter().enumerate() {
        let n = n as u64;
        let draw = |purpose| s.draw(purpose, n, false);
        let lost = match st.loss {
            Some(Loss::Independent { probability, correlation }) => {
                loss.fires(probability, correlation, draw(Purpose::Loss)[0])
            }
            None => false,
            _ => unimplemented!("the other kinds are checked with netem's model"),
        };
        let duplicated =
            st.duplication.is_some_and(|c| dup.fires(c.probability, c.correlation, draw(Purpose::Duplication)[0]));
        let bit = st.corruption.and_then(|c| {
            let words = draw(Purpose::Corruption);
            let skip = c.skip_bytes.unwrap_or(14);
            let span = u128::from(len.saturating_sub(skip)) * 8;
            (corrupt.fires(c.probability, c.correlation, words[0]) && len > skip)
                .then(|| (u64::from(skip) * 8) + ((u128::from(words[1]) * span) >> 32) as u64)
        });
        let reordered = st.reordering.is_some_and(|r| {
            let strikes = reorder.fires(r.probability, r.correlation, draw(Purpose::Reordering)[0]);
            let now = gap + 1 >= r.gap && strikes;
            gap = if now { 0 } else { gap + 1 };
            now
        });
        let offset = st.jitter.as_ref().map_or(0.0, |jitter| {
            assert!(jitter.distribution == Distribution::Uniform && jitter.correlation == 0.0);
            ((2.0 * open_unit(draw(Purpose::Jitter)) - 1.0) * (jitter.jitter_us * 1000.0)).round()
        });
        let delay = ((st.delay_us.unwrap_or(0.0) * 1000.0).round() + offset).max(0.0) as u64;
        if lost {
            continue;
        }
        for copy in 0..=u32::from(duplicated) {
            let mut at = now;
            if let Some(rate) = &st.rate {
                let waiting: Vec<_> = served.iter().filter(|(start, _, _)| *start > now).collect();
                let busy = served.last().is_some_and(|(_, through, _)| *through > now);
                if busy {
                    let bytes: u64 = waiting.iter().map(|(_, _, len)| u64::from(*len)).sum();
                    if bytes + u64::from(len) > rate.queue_bytes.unwrap_or(u64::MAX)
                        || waiting.len() as u64 >= rate.queue_packets.map_or(u64::MAX, u64::from)
                    {
                        continue;
                    }
                }
                let start = served.last().map_or(now, |(_, through, _)| now.max(*through));
                let bps = u128::from(rate.rate_bps.unwrap());
                let work = u128::from((len as i32 + rate.overhead_bytes) as u32) * 8_000_000_000 + owed;
                owed = work % bps;
                at = start + (work / bps) as u64;
                served.push((start, at, len));
            }
            if !reordered {
                at += delay;
                if st.jitter.as_ref().is_none_or(|jitter| jitter.keep_order.unwrap_or(true)) {
                    at = at.max(order_at);
                    order_at = at;
                }
            }
            let position = left.len();
            left.push((at, position, (at, n, if copy == 0 { bit } else { None })));
        }
    }
    left.sort_by_key(|&(at, position, _)| (at, position));
    left.into_iter().map(|(_, _, left)| left).collect()
}
