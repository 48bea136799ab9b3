//! The link again in plain code: sorted lists, one packet after another, nothing shared with the crate but
//! the random numbers. Slow and obvious; the crate must agree with it departure by departure.

use emulator_core::config::{Direction, Distribution, Loss, Model};
use emulator_core::distribution::netem_table;
use emulator_core::philox::{Purpose, Source};

/// A packet as it is offered: time and length.
pub(crate) type Offered = (u64, u32);

/// A departure: time, number of the packet, the bit that is inverted.
pub(crate) type Left = (u64, u64, Option<u64>);

fn u32_of(p: f64) -> u32 {
    (p * 4_294_967_295.0).round_ties_even() as u32
}

/// netem's `struct crndstate`.
struct Crnd {
    last: u32,
    rho: u32,
}

impl Crnd {
    fn new(source: &Source, purpose: Purpose, correlation: f64) -> Self {
        Self { last: source.draw(purpose, u64::MAX, false)[0], rho: u32_of(correlation) }
    }

    fn get(&mut self, random: u32) -> u32 {
        if self.rho == 0 {
            return random;
        }
        let rho = u128::from(self.rho) + 1;
        let answer = (u128::from(random) * ((1 << 32) - rho) + u128::from(self.last) * rho) >> 32;
        self.last = answer as u32;
        self.last
    }
}

/// netem: `netem_enqueue` and a tfifo that is emptied in time, transcribed line by line.
pub(crate) struct Netem<'a> {
    d: &'a Direction,
    s: Source,
    dup: Crnd,
    loss: Crnd,
    corrupt: Crnd,
    reorder: Crnd,
    delay: Crnd,
    ge_bad: bool,
    four: u8,
    counter: u32,
    table: Option<Box<[i16]>>,
    queue: Vec<(u64, u64)>,
    order: u64,
    left: Vec<(u64, u64, Left)>,
}

impl<'a> Netem<'a> {
    pub(crate) fn new(d: &'a Direction, s: Source) -> Self {
        assert_eq!(d.model, Model::Netem);
        let st = &d.stages;
        let jitter = st.jitter.as_ref();
        let loss = match st.loss {
            Some(Loss::Independent { correlation, .. }) => correlation,
            _ => 0.0,
        };
        Self {
            d,
            s,
            dup: Crnd::new(&s, Purpose::Duplication, st.duplication.map_or(0.0, |c| c.correlation)),
            loss: Crnd::new(&s, Purpose::Loss, loss),
            corrupt: Crnd::new(&s, Purpose::Corruption, st.corruption.map_or(0.0, |c| c.correlation)),
            reorder: Crnd::new(&s, Purpose::Reordering, st.reordering.map_or(0.0, |c| c.correlation)),
            delay: Crnd::new(&s, Purpose::Jitter, jitter.map_or(0.0, |j| j.correlation)),
            ge_bad: false,
            four: 1,
            counter: 0,
            table: jitter.and_then(|j| netem_table(j.distribution, &j.table)),
            queue: vec![],
            order: 0,
            left: vec![],
        }
    }

    /// All departures in their order.
    pub(crate) fn run(mut self, packets: &[Offered]) -> Vec<Left> {
        for (n, &(now, len)) in packets.iter().enumerate() {
            self.queue.retain(|&(at, _)| at > now);
            self.enqueue(now, n as u64, len, false);
        }
        self.left.sort_by_key(|&(at, order, _)| (at, order));
        self.left.into_iter().map(|(_, _, left)| left).collect()
    }

    fn loss_event(&mut self, n: u64, copy: bool) -> bool {
        let r = self.s.draw(Purpose::Loss, n, copy);
        match self.d.stages.loss.as_ref() {
            None => false,
            Some(Loss::Independent { probability, .. }) => {
                let loss = u32_of(*probability);
                loss != 0 && loss >= self.loss.get(r[0])
            }
            Some(Loss::GilbertElliott { p, r: back, h, k }) => {
                let (p, back) = (u32_of(*p), u32_of(back.unwrap_or(1.0 - p)));
                let (h, k1) = (u32_of(*h), u32_of(1.0 - k));
                if !self.ge_bad {
                    if r[0] < p {
                        self.ge_bad = true;
                    }
                    r[1] < k1
                } else {
                    if r[0] < back {
                        self.ge_bad = false;
                    }
                    r[1] > h
                }
            }
            Some(Loss::FourState { p13, p31, p32, p23, p14 }) => {
                let (a1, a2) = (u32_of(*p13), u32_of(p31.unwrap_or(1.0 - p13)));
                let (a3, a4, a5) = (u32_of(*p32), u32_of(*p14), u32_of(*p23));
                let rnd = r[0];
                match self.four {
                    1 if rnd < a4 => {
                        self.four = 4;
                        true
                    }
                    1 if a4 < rnd && rnd < a1.wrapping_add(a4) => {
                        self.four = 3;
                        true
                    }
                    2 if rnd < a5 => {
                        self.four = 3;
                        true
                    }
                    3 if rnd < a3 => {
                        self.four = 2;
                        false
                    }
                    3 if a3 < rnd && rnd < a2.wrapping_add(a3) => {
                        self.four = 1;
                        false
                    }
                    3 => a2.wrapping_add(a3) < rnd,
                    4 => {
                        self.four = 1;
                        false
                    }
                    _ => false,
                }
            }
            Some(Loss::Bursts { .. }) => unreachable!("netem has none"),
            Some(Loss::Pattern { pattern, repeat }) => {
                let marks = pattern.as_bytes();
                let n = n as usize;
                if *repeat { marks[n % marks.len()] == b'1' } else { marks.get(n) == Some(&b'1') }
            }
        }
    }

    fn enqueue(&mut self, now: u64, n: u64, len: u32, copy: bool) {
        let st = &self.d.stages;
        let mut count = 1;
        if let Some(chance) = st.duplication.filter(|_| !copy) {
            let duplicate = u32_of(chance.probability);
            if duplicate != 0 && duplicate >= self.dup.get(self.s.draw(Purpose::Duplication, n, copy)[0]) {
                count += 1;
            }
        }
        if self.loss_event(n, copy) {
            count -= 1;
        }
        if count == 0 {
            return;
        }
        let mut bit = None;
        if let Some(settings) = st.corruption {
            let corrupt = u32_of(settings.probability);
            let words = self.s.draw(Purpose::Corruption, n, copy);
            if corrupt != 0 && corrupt >= self.corrupt.get(words[0]) {
                bit = Some(((u128::from(words[1]) * u128::from(len) * 8) >> 32) as u64);
            }
        }
        if self.queue.len() >= self.d.limit_packets.unwrap_or(1000) as usize {
            return;
        }
        if count > 1 {
            self.enqueue(now, n, len, true);
        }
        let (gap, probability) = st.reordering.map_or((0, 0), |r| (r.gap, u32_of(r.probability)));
        let delayed = gap == 0
            || self.counter < gap - 1
            || probability < self.reorder.get(self.s.draw(Purpose::Reordering, n, copy)[0]);
        let time_to_send = if delayed {
            self.counter += 1;
            let mut delay = self.tabledist(n, copy);
            let mut from = now as i64;
            if let Some(rate) = &st.rate {
                if let Some(last) = self.queue.iter().map(|&(at, _)| at).max() {
                    delay -= last as i64 - from;
                    delay = delay.max(0);
                    from = last as i64;
                }
                let mut bytes = i64::from(len) + i64::from(rate.overhead_bytes);
                if rate.cell_bytes > 0 {
                    let cells = (bytes + i64::from(rate.cell_bytes) - 1) / i64::from(rate.cell_bytes);
                    bytes = cells * (i64::from(rate.cell_bytes) + i64::from(rate.cell_overhead_bytes));
                }
                delay += (bytes as i128 * 1_000_000_000 / i128::from(rate.rate_bps.unwrap() / 8)) as i64;
            }
            from + delay
        } else {
            self.counter = 0;
            now as i64
        };
        let at = (time_to_send.max(now as i64)) as u64;
        // A duplicate that is due at once is still there when its original looks for the last in the queue.
        self.queue.push((at, n));
        self.left.push((at, self.order, (at, n, bit)));
        self.order += 1;
    }

    fn tabledist(&mut self, n: u64, copy: bool) -> i64 {
        let st = &self.d.stages;
        let mu = (st.delay_us.unwrap_or(0.0) * 1000.0).round() as i64;
        let Some(jitter) = &st.jitter else { return mu };
        let sigma = (jitter.jitter_us * 1000.0).round() as i64;
        if sigma == 0 {
            return mu;
        }
        let rnd = self.delay.get(self.s.draw(Purpose::Jitter, n, copy)[0]);
        match &self.table {
            None => {
                assert_eq!(jitter.distribution, Distribution::Uniform);
                i64::from(rnd % (2 * sigma as u32)) + mu - sigma
            }
            Some(table) => {
                let t = i64::from(table[rnd as usize % table.len()]);
                let x = (sigma % 8192) * t;
                let x = if x >= 0 { x + 4096 } else { x - 4096 };
                x / 8192 + (sigma / 8192) * t + mu
            }
        }
    }
}
