//! Whatever a configuration says: it is refused, or it runs. No time, length or order of calls makes it panic,
//! and every packet that was accepted comes out.

use emulator_core::Link;
use emulator_core::config::{
    Blackout, Chance, Codel, Config, Corruption, Direction, Distribution, Jitter, Loss, Model, Rate, Reordering,
    Schedule, Stages, Step, Trace,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn some<T: std::fmt::Debug + Clone + 'static>(
    strategy: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Option<T>> {
    prop::option::of(strategy).boxed()
}

/// Mostly sensible, sometimes anything.
fn number(sensible: std::ops::Range<f64>) -> BoxedStrategy<f64> {
    prop_oneof![20 => sensible, 1 => any::<f64>(), 1 => Just(0.0), 1 => Just(1.0)].boxed()
}

fn integer(sensible: std::ops::Range<u64>) -> BoxedStrategy<u64> {
    prop_oneof![20 => sensible, 1 => any::<u64>(), 1 => Just(0)].boxed()
}

fn short(sensible: std::ops::Range<u64>) -> BoxedStrategy<u32> {
    integer(sensible).prop_map(|value| value.min(u64::from(u32::MAX)) as u32).boxed()
}

fn probability() -> BoxedStrategy<f64> {
    number(0.0..1.0)
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        (probability(), probability())
            .prop_map(|(probability, correlation)| Loss::Independent { probability, correlation }),
        (probability(), some(probability()), probability(), probability())
            .prop_map(|(p, r, h, k)| Loss::GilbertElliott { p, r, h, k }),
        (probability(), some(probability()), probability(), probability(), probability())
            .prop_map(|(p13, p31, p32, p23, p14)| Loss::FourState { p13, p31, p32, p23, p14 }),
        (number(100.0..9000.0), number(100.0..90_000.0), probability(), probability()).prop_map(
            |(burst_us, gap_us, probability, outside)| Loss::Bursts {
                burst_us,
                every_us: burst_us + gap_us,
                probability,
                outside
            }
        ),
        ("[01]{0,5}", any::<bool>()).prop_map(|(pattern, repeat)| Loss::Pattern { pattern, repeat }),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    let trace = (prop::collection::vec(integer(0..50), 0..6), short(1..3000), any::<bool>()).prop_map(
        |(mut at_ms, bytes, sort)| {
            if sort {
                at_ms.sort_unstable();
            }
            Trace { at_ms, bytes }
        },
    );
    let pace = prop_oneof![
        8 => integer(8..1_000_000_000).prop_map(|bps| (Some(bps), None)),
        4 => trace.prop_map(|trace| (None, Some(trace))),
        1 => Just((None, None)),
    ];
    let codel =
        (integer(1..1000), integer(1000..9000)).prop_map(|(target_us, interval_us)| Codel { target_us, interval_us });
    (pace, some(integer(1..9000)), some(short(1..50)), some(codel), any::<i16>(), short(0..60), any::<i16>()).prop_map(
        |((rate_bps, trace), queue_bytes, queue_packets, codel, overhead, cell_bytes, cell_overhead)| Rate {
            rate_bps,
            trace,
            queue_bytes,
            queue_packets,
            codel,
            overhead_bytes: overhead.into(),
            cell_bytes,
            cell_overhead_bytes: cell_overhead.into(),
        },
    )
}

fn jitter() -> impl Strategy<Value = Jitter> {
    let shape = prop_oneof![
        Just((Distribution::Uniform, vec![])),
        Just((Distribution::Pareto, vec![])),
        Just((Distribution::Normal, vec![])),
        prop::collection::vec(number(-1.0..2.0), 0..4).prop_map(|table| (Distribution::Table, table)),
    ];
    let time = some(number(100.0..90_000.0));
    (number(0.0..500.0), shape, probability(), time, some(any::<bool>())).prop_map(
        |(jitter_us, (distribution, table), correlation, correlation_time_us, keep_order)| Jitter {
            jitter_us,
            distribution,
            table,
            correlation: if correlation_time_us.is_some() { 0.0 } else { correlation },
            correlation_time_us,
            keep_order,
        },
    )
}

fn stages() -> impl Strategy<Value = Stages> {
    let chance = || (probability(), probability());
    let rare = |probability: f64, correlation: f64| Chance { probability, correlation };
    (
        some(loss()),
        some(chance()),
        some((chance(), some(short(0..2000)))),
        some(rate()),
        some(number(500.0..5000.0)),
        some(jitter()),
        some((chance(), short(1..9))),
    )
        .prop_map(move |(loss, duplication, corruption, rate, delay_us, jitter, reordering)| Stages {
            loss,
            duplication: duplication.map(|(p, c)| rare(p, c)),
            corruption: corruption.map(|((probability, correlation), skip_bytes)| Corruption {
                probability,
                correlation,
                skip_bytes,
            }),
            rate,
            delay_us,
            jitter,
            reordering: reordering.map(|((probability, correlation), gap)| Reordering {
                probability,
                correlation,
                gap,
            }),
        })
}

fn direction() -> impl Strategy<Value = Direction> {
    let blackout = (integer(0..9000), integer(0..900), some(integer(900..9000)))
        .prop_map(|(start_us, length_us, every_us)| Blackout { start_us, length_us, every_us });
    let step = (integer(1..9000), stages(), some(any::<bool>())).prop_map(|(at_us, set, down)| Step {
        at_us,
        set,
        clear: vec![],
        down,
    });
    let schedule =
        (some(integer(9000..20_000)), prop::collection::vec(step, 0..3)).prop_map(|(repeat_us, mut steps)| {
            steps.sort_by_key(|step| step.at_us);
            Schedule { repeat_us, steps }
        });
    let bounds = (some(short(1..50)), some(number(0.0..900.0)));
    (any::<bool>(), bounds, stages(), prop::collection::vec(blackout, 0..2), some(schedule)).prop_map(
        |(netem, (limit_packets, propagation_us), stages, blackouts, schedule)| Direction {
            model: if netem { Model::Netem } else { Model::Stated },
            limit_packets: limit_packets.filter(|_| netem),
            propagation_us,
            stages,
            blackouts,
            schedule,
            ..Direction::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_nothing_is_forgotten(
        direction in direction(),
        seed in any::<u64>(),
        packets in prop::collection::vec((integer(0..900_000), short(0..1600), any::<bool>()), 1..60),
    ) {
        let config = Config { seed, link: 0, directions: vec![direction] };
        let Ok(mut link) = Link::new(&config, 0) else { return Ok(()) };
        let (mut now, mut inside, mut before) = (0u64, 0u64, 0);
        for (number, (gap, len, take)) in packets.into_iter().enumerate() {
            now += gap.min(10_000_000_000);
            inside += u64::from(link.offer(now, len, 1, number as u64));
            while take && let Some(departure) = link.take(now) {
                prop_assert!(departure.at <= now);
                inside -= 1;
            }
            if number == 30 {
                link.restart(now);
            }
        }
        // A byte a second under a schedule of milliseconds is allowed, and would take days of such steps to drain.
        let mut steps = 0;
        while let Some(next) = link.next_departure()
            && steps < 100_000
        {
            steps += 1;
            let (earlier, kept) = (now, inside);
            now = now.max(next);
            while let Some(departure) = link.take(now) {
                // In the order of time, except for drops, which are reported as they are known.
                prop_assert!(departure.at <= now);
                before = departure.at.max(before);
                inside -= 1;
            }
            prop_assert!(now > earlier || inside < kept, "it is due at {} and nothing comes of it", next);
        }
        prop_assert_eq!(inside, link.in_flight() as u64);
        prop_assert!(inside == 0 || steps == 100_000, "{} packets are kept and will never leave", inside);
        let stats = link.stats();
        let out = stats.sent + stats.dropped.loss + stats.dropped.blackout + stats.dropped.queue + stats.dropped.codel;
        // With netem, one that is both duplicated and lost is one loss and one duplicate.
        // A drop is counted when it is decided, and may still be inside.
        let known = stats.offered + stats.duplicated;
        prop_assert!(out <= known && known <= out + inside, "{} of {} left, {} are inside", out, known, inside);
    }
}
