//! The link agrees with the reference in plain code, departure by departure, for any configuration and any
//! timing, and whether departures are taken in time or late.

mod reference;

use emulator_core::config::{
    Chance, Config, Corruption, Direction, Distribution, Jitter, Loss, Model, Rate, Reordering, Stages,
};
use emulator_core::philox::Source;
use emulator_core::{Link, Outcome};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use reference::{Left, Netem, Offered};

#[path = "reference/stated.rs"]
mod stated;

fn some<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::of(strategy)
}

fn chance() -> impl Strategy<Value = (f64, f64)> {
    (0.0..=1.0, prop_oneof![Just(0.0), 0.0..0.99])
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        chance().prop_map(|(probability, correlation)| Loss::Independent { probability, correlation }),
        (0.0..=1.0, some(0.0..=1.0), 0.0..=1.0, 0.0..=1.0).prop_map(|(p, r, h, k)| Loss::GilbertElliott { p, r, h, k }),
        (0.0..0.5, 0.0..0.5, 0.0..0.5, 0.0..=1.0, 0.0..0.5).prop_map(|(p13, p31, p32, p23, p14)| Loss::FourState {
            p13,
            p31: Some(p31),
            p32,
            p23,
            p14
        }),
        ("[01]{1,9}", any::<bool>()).prop_map(|(pattern, repeat)| Loss::Pattern { pattern, repeat }),
    ]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    let kind = prop_oneof![
        Just(Distribution::Uniform),
        Just(Distribution::Normal),
        Just(Distribution::Pareto),
        Just(Distribution::Paretonormal),
    ];
    (0.0..3000.0, kind, prop_oneof![Just(0.0), 0.0..0.99]).prop_map(|(jitter_us, distribution, correlation)| Jitter {
        jitter_us,
        distribution,
        table: vec![],
        correlation,
        correlation_time_us: None,
        keep_order: None,
    })
}

fn rate() -> impl Strategy<Value = Rate> {
    (1u64..1_000_000, -14i32..30, some(Just(48u32))).prop_map(|(bytes, overhead_bytes, cell)| Rate {
        rate_bps: Some(bytes * 1000),
        overhead_bytes,
        cell_bytes: cell.unwrap_or(0),
        cell_overhead_bytes: if cell.is_some() { 5 } else { 0 },
        ..Rate::default()
    })
}

fn netem() -> impl Strategy<Value = Direction> {
    let stages = (
        some(loss()),
        some(chance()),
        some(chance()),
        some(rate()),
        1.0..2000.0,
        some(jitter()),
        some((chance(), 1u32..6)),
    );
    (stages, 1u32..40).prop_map(|((loss, dup, corrupt, rate, delay, jitter, reorder), limit)| Direction {
        model: Model::Netem,
        limit_packets: Some(limit),
        stages: Stages {
            loss,
            duplication: dup.map(|(probability, correlation)| Chance { probability, correlation }),
            corruption: corrupt.map(|(probability, correlation)| Corruption {
                probability,
                correlation,
                skip_bytes: None,
            }),
            rate,
            delay_us: Some(delay),
            jitter,
            reordering: reorder.map(|((probability, correlation), gap)| Reordering { probability, correlation, gap }),
        },
        ..Direction::default()
    })
}

fn as_stated(mut direction: Direction, queue: (Option<u64>, Option<u32>), keep_order: Option<bool>) -> Direction {
    direction.model = Model::Stated;
    direction.limit_packets = None;
    if !matches!(direction.stages.loss, Some(Loss::Independent { .. })) {
        direction.stages.loss = None;
    }
    if let Some(jitter) = &mut direction.stages.jitter {
        jitter.distribution = Distribution::Uniform;
        jitter.correlation = 0.0;
        jitter.jitter_us = jitter.jitter_us.min(direction.stages.delay_us.unwrap());
        jitter.keep_order = keep_order;
    }
    if let Some(rate) = &mut direction.stages.rate {
        (rate.queue_bytes, rate.queue_packets) = queue;
        (rate.cell_bytes, rate.cell_overhead_bytes) = (0, 0);
    }
    direction
}

fn packets() -> impl Strategy<Value = Vec<Offered>> {
    let gap = prop_oneof![Just(0u64), 0u64..3_000, 0u64..300_000, 0u64..5_000_000];
    prop::collection::vec((gap, 60u32..1515), 1..150).prop_map(|gaps| {
        let mut now = 0;
        gaps.into_iter()
            .map(|(gap, len)| {
                now += gap;
                (now, len)
            })
            .collect()
    })
}

/// Departures of the link, taken in time (or only every so often).
fn departures(direction: &Direction, seed: u64, packets: &[Offered], in_time: bool) -> (Vec<Left>, u64) {
    let config = Config { seed, link: 3, directions: vec![direction.clone()] };
    let mut link = Link::new(&config, 0).unwrap();
    let mut left = vec![];
    let mut inside = 0;
    let mut take = |link: &mut Link, now: u64, inside: &mut u32| {
        while let Some(departure) = link.take(now) {
            *inside -= 1;
            let bit = match departure.outcome {
                Outcome::Corrupted(bit) => Some(bit),
                _ => None,
            };
            left.push((departure.at, departure.handle, bit));
        }
    };
    for (n, &(now, len)) in packets.iter().enumerate() {
        while let Some(next) = link.next_departure().filter(|&next| in_time && next <= now) {
            take(&mut link, next, &mut inside);
        }
        inside += link.offer(now, len, 1, n as u64);
    }
    while let Some(next) = link.next_departure() {
        take(&mut link, next, &mut inside);
    }
    assert_eq!((inside, link.in_flight()), (0, 0));
    (left, link.stats().decisions)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn netem_agrees(direction in netem(), seed in any::<u64>(), packets in packets()) {
        let (left, decisions) = departures(&direction, seed, &packets, true);
        let expected = Netem::new(&direction, Source::new(seed, 3, 0)).run(&packets);
        prop_assert_eq!(&left, &expected);
        prop_assert_eq!((left, decisions), departures(&direction, seed, &packets, false));
    }

    #[test]
    fn stated_agrees(
        direction in netem(),
        queue in (some(0u64..20_000), some(1u32..20)),
        keep_order in some(any::<bool>()),
        seed in any::<u64>(),
        packets in packets(),
    ) {
        let queue = (queue.0.map(|bytes| bytes + 1), queue.1);
        let direction = as_stated(direction, queue, keep_order);
        let (left, decisions) = departures(&direction, seed, &packets, true);
        prop_assert_eq!(&left, &stated::run(&direction, Source::new(seed, 3, 0), &packets));
        prop_assert_eq!((left, decisions), departures(&direction, seed, &packets, false));
    }
}
