//! What 10^6 virtual packets realise against what was stated: 99 % binomial intervals, Kolmogorov-Smirnov at
//! 1 %, lag-1 correlation within 0.02. Seeds are fixed, so a test that passes passes always.

use emulator_core::config::{Config, Distribution};
use emulator_core::distribution::Shape;
use emulator_core::stats::Stats;
use emulator_core::{Link, Outcome, normal};

const N: u64 = 1_000_000;

fn link(model: &str, stages: &str) -> Link {
    let json = format!(r#"{{"seed": 11, "directions": [{{"name": "d", "model": "{model}", "stages": {stages}}}]}}"#);
    let config: Config = serde_json::from_str(&json).unwrap();
    Link::new(&config, 0).unwrap()
}

/// Sends packets `gap` apart; for each, its delays in nanoseconds (none: lost, two: duplicated).
fn send(link: &mut Link, gap: u64) -> Vec<Vec<u64>> {
    let mut delays = vec![vec![]; N as usize];
    let mut take = |link: &mut Link, now: u64| {
        while let Some(departure) = link.take(now) {
            if departure.outcome != Outcome::Dropped {
                delays[departure.handle as usize].push(departure.at - departure.handle * gap);
            }
        }
    };
    for n in 0..N {
        take(link, n * gap);
        link.offer(n * gap, 1000, 1, n);
    }
    take(link, u64::MAX / 4);
    delays
}

/// Half the width of the 99 % interval of a proportion; correlation leaves fewer independent packets.
fn interval(p: f64, correlation: f64) -> f64 {
    2.576 * (p * (1.0 - p) / N as f64 * (1.0 + correlation) / (1.0 - correlation)).sqrt()
}

fn lag1(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / n / variance
}

fn assert_near(what: &str, found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within, "{what}: {found}, expected {expected} within {within}");
}

#[test]
fn loss_has_the_stated_rate_and_correlation() {
    for p in [0.0025, 0.01, 0.05, 0.3] {
        for c in [0.0, 0.25, 0.5, 0.9] {
            let stages = format!(r#"{{"loss": {{"kind": "independent", "probability": {p}, "correlation": {c}}}}}"#);
            let mut link = link("stated", &stages);
            let lost: Vec<f64> = send(&mut link, 1000).iter().map(|d| f64::from(u8::from(d.is_empty()))).collect();
            let what = format!("loss {p} correlation {c}");
            assert_near(&what, lost.iter().sum::<f64>() / N as f64, p, interval(p, c));
            assert_near(&what, lag1(&lost), c, 0.02);
            assert_eq!(link.stats().dropped.loss, lost.iter().sum::<f64>() as u64);
        }
    }
}

#[test]
fn duplication_corruption_and_reordering_have_the_stated_rates() {
    for (p, c) in [(0.005, 0.0), (0.05, 0.5)] {
        let chance = format!(r#"{{"probability": {p}, "correlation": {c}}}"#);
        let stages =
            format!(r#"{{"delay_us": 5, "duplication": {chance}, "corruption": {chance}, "reordering": {chance}}}"#);
        let mut link = link("stated", &stages);
        let sent = send(&mut link, 10_000);
        let Stats { duplicated, corrupted, .. } = link.stats();
        assert_eq!(sent.iter().filter(|d| d.len() == 2).count() as u64, duplicated);
        let early = sent.iter().filter(|d| d[0] == 0).count();
        for (what, count) in [("duplicated", duplicated), ("corrupted", corrupted), ("reordered", early as u64)] {
            assert_near(what, count as f64 / N as f64, p, interval(p, c));
        }
    }
}

/// With everything at once, as the accuracy benchmark has it: one seed in a hundred is outside of its 99 % interval, but
/// the seeds together are not.
#[test]
fn skips_among_all_other_impairments_are_unbiased_over_seeds() {
    const SEEDS: u64 = 40;
    let (p, c) = (0.025, 0.5);
    let stages = format!(
        r#"{{"loss": {{"kind": "gilbert-elliott", "p": 0.003, "r": 0.3}}, "duplication": {{"probability": 0.005}},
            "corruption": {{"probability": 0.002}}, "delay_us": 10000,
            "jitter": {{"jitter_us": 4000, "distribution": "uniform", "correlation": 0.25}},
            "reordering": {{"probability": {p}, "correlation": {c}}}}}"#
    );
    let z: Vec<f64> = (0..SEEDS)
        .map(|seed| {
            let json = format!(
                r#"{{"seed": {seed}, "directions": [{{"name": "d", "model": "stated", "stages": {stages}}}]}}"#
            );
            let mut link = Link::new(&serde_json::from_str::<Config>(&json).unwrap(), 0).unwrap();
            let sent = send(&mut link, 100_000);
            let arrived = sent.iter().filter(|delays| !delays.is_empty()).count() as f64;
            let early = sent.iter().filter(|delays| delays.first() == Some(&0)).count() as f64;
            (early / arrived - p) / (interval(p, c) / 2.576)
        })
        .collect();
    let mean = z.iter().sum::<f64>() / SEEDS as f64;
    let spread = z.iter().map(|x| x * x).sum::<f64>() / SEEDS as f64;
    assert_near("mean of z", mean, 0.0, 2.576 / (SEEDS as f64).sqrt());
    // 99 % of chi-squared with 40 degrees of freedom, divided by 40
    assert!((0.518..1.670).contains(&spread), "the spread of z is {spread}");
}

/// Distribution functions written down apart from the code under test.
fn distribution(kind: Distribution) -> fn(f64) -> f64 {
    match kind {
        Distribution::Uniform => |x| (x + 1.0) / 2.0,
        Distribution::Normal => normal::cdf,
        Distribution::Pareto => |x| {
            // Pareto with shape 3 on 1 to 10: raw moments 3/2 (1 - 10^-2)/(1 - 10^-3), 3 (1 - 10^-1)/(1 - 10^-3).
            let (mean, square): (f64, f64) = (1.5 * 0.99 / 0.999, 3.0 * 0.9 / 0.999);
            let y: f64 = x * (square - mean * mean).sqrt() + mean;
            (1.0 - y.powi(-3)) / 0.999
        },
        _ => unimplemented!(),
    }
}

#[test]
fn jitter_has_the_stated_distribution_and_correlation() {
    let (delay, size) = (20_000.0, 2_000.0);
    for (name, kind) in
        [("uniform", Distribution::Uniform), ("normal", Distribution::Normal), ("pareto", Distribution::Pareto)]
    {
        for c in [0.0, 0.25, 0.9] {
            let stages = format!(
                r#"{{"delay_us": {delay}, "jitter": {{"jitter_us": {size}, "distribution": "{name}", "correlation": {c}}}}}"#
            );
            let mut link = link("stated", &stages);
            let mut x: Vec<f64> =
                send(&mut link, 100_000_000).iter().map(|d| (d[0] as f64 / 1000.0 - delay) / size).collect();
            let what = format!("{name} correlation {c}");
            assert_near(&what, lag1(&x), c, 0.02);
            assert_near(&what, link.stats().delay_us.mean, delay, 0.01 * delay);
            assert_near(&what, link.stats().delay_us.lag1, c, 0.02);
            x.sort_by(f64::total_cmp);
            let f = distribution(kind);
            let distance = x.iter().enumerate().map(|(i, &x)| {
                let f = f(x);
                (f - i as f64 / N as f64).abs().max((f - (i + 1) as f64 / N as f64).abs())
            });
            let effective = N as f64 * (1.0 - c) / (1.0 + c);
            let distance = distance.fold(0.0, f64::max);
            assert!(distance < 1.628 / effective.sqrt(), "{what}: {distance}");
        }
    }
}

#[test]
fn paretonormal_and_tables_too() {
    let table = r#""distribution": "table", "table": [-1, 0, 4]"#;
    for (shape, mean, deviation) in
        [(r#""distribution": "paretonormal""#, 0.0, 1.0), (table, 1.0, (26.0f64 / 9.0 + 16.0 / 9.0).sqrt())]
    {
        let stages = format!(r#"{{"delay_us": 20000, "jitter": {{"jitter_us": 1000, {shape}, "correlation": 0.5}}}}"#);
        let mut link = link("stated", &stages);
        send(&mut link, 100_000_000);
        let delay = link.stats().delay_us;
        assert_near(shape, delay.mean, 20_000.0 + 1000.0 * mean, 10.0);
        assert_near(shape, delay.deviation, 1000.0 * deviation, 20.0);
        assert_near(shape, delay.lag1, 0.5, 0.02);
    }
    assert!(Shape::new(Distribution::Paretonormal, &[]).at(0.5) < 0.0);
}

#[test]
fn gilbert_elliott_has_its_mean_and_burst_length() {
    let (p, r, h, k) = (0.01, 0.2, 0.1, 0.999);
    let stages = format!(r#"{{"loss": {{"kind": "gilbert-elliott", "p": {p}, "r": {r}, "h": {h}, "k": {k}}}}}"#);
    for model in ["stated", "netem"] {
        let mut link = link(model, &stages);
        send(&mut link, 1000);
        let bad = p / (p + r);
        let expected = bad * (1.0 - h) + (1.0 - bad) * (1.0 - k);
        let dropped = link.stats().dropped.loss as f64 / N as f64;
        assert_near(model, dropped, expected, interval(expected, 1.0 - p - r));
    }
    let mut link = link("stated", r#"{"loss": {"kind": "gilbert-elliott", "p": 0.01, "r": 0.25}}"#);
    send(&mut link, 1000);
    let stats = link.stats();
    assert_near("burst length", stats.dropped.loss as f64 / stats.loss_runs as f64, 4.0, 0.15);
}

#[test]
fn netem_starves_correlated_loss() {
    // Simulated apart with the kernel's integer formulas, 10^6 draws.
    for (p, c, expected, within) in
        [(0.01, 0.25, 0.0, 1e-5), (0.05, 0.25, 0.00198, 3e-4), (0.1, 0.25, 0.01748, 1e-3), (0.3, 0.25, 0.2331, 2e-3)]
    {
        let stages = format!(r#"{{"loss": {{"kind": "independent", "probability": {p}, "correlation": {c}}}}}"#);
        let mut link = link("netem", &stages);
        send(&mut link, 1000);
        assert_near("netem loss", link.stats().dropped.loss as f64 / N as f64, expected, within);
    }
}

#[test]
fn netem_jitter_loses_its_correlation_and_pareto_its_deviation() {
    for (shape, deviation) in [("uniform", 10_000.0 / 3f64.sqrt()), ("normal", 10_000.0), ("pareto", 8_197.0)] {
        let stages = format!(
            r#"{{"delay_us": 100000, "jitter": {{"jitter_us": 10000, "distribution": "{shape}", "correlation": 0.25}}}}"#
        );
        let mut link = link("netem", &stages);
        send(&mut link, 1_000_000_000);
        let delay = link.stats().delay_us;
        assert_near(shape, delay.deviation, deviation, 0.01 * deviation);
        assert_near(shape, delay.lag1, 0.0, 0.02);
    }
}

#[test]
fn netem_jitter_reorders_most_packets() {
    for (gap, expected) in [(1_000_000, 0.71), (100_000, 0.91)] {
        let stages = r#"{"delay_us": 20000, "jitter": {"jitter_us": 10000}}"#;
        let mut link = link("netem", stages);
        let mut latest = 0;
        let mut late = 0;
        for n in 0..N {
            while let Some(departure) = link.take(n * gap) {
                late += u64::from(departure.handle < latest);
                latest = latest.max(departure.handle);
            }
            link.offer(n * gap, 1000, 1, n);
        }
        assert_near("late", late as f64 / N as f64, expected, 0.02);
    }
}
