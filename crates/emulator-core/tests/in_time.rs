//! Jitter and bursts in time are the same for any sender, at any rate, in any number of pieces.

use emulator_core::config::Config;
use emulator_core::{Link, Outcome, stats::Stats};

const SECOND: u64 = 1_000_000_000;

fn link(seed: u64, stages: &str) -> Link {
    let json = format!(r#"{{"seed": {seed}, "directions": [{{"name": "d", "stages": {stages}}}]}}"#);
    let config: Config = serde_json::from_str(&json).unwrap();
    Link::new(&config, 0).unwrap()
}

/// Sends for so many nanoseconds; the delay of each packet that arrived, by when it was sent.
fn send(link: &mut Link, gap: u64, length: u64) -> Vec<(u64, u64)> {
    let mut found = vec![];
    let mut take = |link: &mut Link, now: u64| {
        while let Some(left) = link.take(now) {
            assert_eq!(left.outcome, Outcome::Sent);
            found.push((left.handle, left.at - left.handle));
        }
    };
    for now in (0..length).step_by(gap as usize) {
        take(link, now);
        link.offer(now, 1000, 1, now);
    }
    take(link, u64::MAX / 4);
    found
}

fn jitter(size: u32, distribution: &str, time: u32) -> String {
    format!(
        r#"{{"delay_us": 8000, "jitter":
            {{"jitter_us": {size}, "distribution": "{distribution}", "correlation_time_us": {time}}}}}"#
    )
}

fn realised(stages: &str, gap: u64, seconds: u64) -> Stats {
    let mut link = link(3, stages);
    send(&mut link, gap, seconds * SECOND);
    link.stats()
}

#[test]
fn the_mean_delay_is_the_stated_one_at_any_packet_rate() {
    for distribution in ["uniform", "normal", "pareto", "paretonormal"] {
        // At the least correlation time that a profile may state: ten times the size.
        let stages = jitter(4000, distribution, 40_000);
        // The mean of a process with a correlation time of 40 ms: four standard errors over so many seconds.
        for (gap, seconds, within) in
            [(SECOND / 100, 2000, 0.02), (SECOND / 1000, 400, 0.03), (SECOND / 20_000, 100, 0.06)]
        {
            let mut sums = (0.0, 0.0);
            for part in 0..4 {
                let mut link = link(part, &stages);
                send(&mut link, gap, seconds / 4 * SECOND);
                let delay = link.stats().delay_us;
                sums = (sums.0 + delay.mean / 4.0, sums.1 + delay.deviation / 4.0);
            }
            assert!((sums.0 / 8000.0 - 1.0).abs() < within, "{distribution} every {gap} ns: {sums:?}");
        }
        let (rare, dense) = (realised(&stages, SECOND / 100, 30), realised(&stages, SECOND / 20_000, 30));
        let moved = dense.delay_us.mean / rare.delay_us.mean - 1.0;
        assert!(moved.abs() < 0.02, "{distribution}: the mean delay moves by {moved} with the packet rate");
    }
}

#[test]
fn all_packets_of_a_moment_have_its_delay_whatever_else_is_sent() {
    let stages = jitter(1000, "normal", 30_000);
    let rare = send(&mut link(9, &stages), 10_000_000, 20 * SECOND);
    let dense = send(&mut link(9, &stages), 100_000, 20 * SECOND);
    assert!(rare.iter().all(|one| dense.binary_search(one).is_ok()));
    assert_ne!(rare, send(&mut link(10, &stages), 10_000_000, 20 * SECOND));
}

#[test]
fn the_path_begins_anew_when_time_does() {
    let stages = format!(
        r#"{}, "loss": {{"kind": "bursts", "burst_us": 5000, "every_us": 100000}}}}"#,
        jitter(1000, "normal", 30_000).strip_suffix('}').unwrap()
    );
    let fresh = send(&mut link(9, &stages), 1_000_000, 5 * SECOND);
    let mut link = link(9, &stages);
    let zero = 7 * SECOND + 123;
    for now in (0..7).map(|n| n * SECOND) {
        link.offer(now, 100, 1, 0);
    }
    while link.take(zero).is_some() {}
    link.restart(zero);
    let mut again = vec![];
    for since in (0..5 * SECOND).step_by(1_000_000) {
        link.offer(zero + since, 1000, 1, since);
    }
    while let Some(left) = link.take(u64::MAX / 4) {
        again.push((left.handle, left.at - zero - left.handle));
    }
    assert_eq!(fresh, again);
}

#[test]
fn bursts_have_their_lengths_in_time_at_any_packet_rate() {
    let stages = r#"{"loss": {"kind": "bursts", "burst_us": 20000, "every_us": 1000000}}"#;
    for gap in [SECOND / 1000, SECOND / 10_000] {
        let (mut lost, mut runs, mut offered) = (0, 0, 0);
        for seed in 0..5 {
            let mut link = link(seed, stages);
            send(&mut link, gap, 1000 * SECOND);
            let stats = link.stats();
            (lost, runs, offered) = (lost + stats.dropped.loss, runs + stats.loss_runs, offered + stats.offered);
        }
        // 5,000 bursts of exponential length: four standard errors are 8 %, of their number 6 %.
        let share = lost as f64 / offered as f64;
        assert!((share / 0.02 - 1.0).abs() < 0.08, "{share} of the packets are lost");
        // A burst shorter than the gap may meet no packet, a little more than the gap's share of a burst do not.
        let met = (-(gap as f64) / 20e6).exp();
        assert!((runs as f64 / (5000.0 * met) - 1.0).abs() < 0.06, "{runs} bursts");
    }
}

#[test]
fn who_sends_each_packet_in_two_pieces_meets_as_many_bursts() {
    let stages = r#"{"loss": {"kind": "bursts", "burst_us": 20000, "every_us": 1000000}}"#;
    let (mut whole, mut parted) = (link(4, stages), link(4, stages));
    for now in (0..500 * SECOND).step_by(1_000_000) {
        whole.offer(now, 1500, 1, 0);
        parted.offer(now, 750, 1, 0);
        parted.offer(now, 750, 1, 0);
    }
    let (one, two) = (whole.stats(), parted.stats());
    assert!(one.loss_runs > 400);
    assert_eq!(one.loss_runs, two.loss_runs);
    assert_eq!(2 * one.dropped.loss, two.dropped.loss);
}

#[test]
fn inside_and_outside_of_bursts_packets_are_lost_with_their_own_probabilities() {
    let stages =
        r#"{"loss": {"kind": "bursts", "burst_us": 50000, "every_us": 100000, "probability": 0.5, "outside": 0.1}}"#;
    let stats = realised(stages, 100_000, 400);
    let share = stats.dropped.loss as f64 / stats.offered as f64;
    assert!((share - 0.3).abs() < 0.02, "{share}");
}

#[test]
fn behind_a_queue_the_order_is_kept_and_every_packet_leaves_when_it_is_said_to() {
    let stages = r#"{"rate": {"rate_bps": 10000000, "queue_bytes": 100000}, "delay_us": 8000,
        "jitter": {"jitter_us": 4000, "distribution": "pareto", "correlation_time_us": 40000}}"#;
    let mut link = link(1, stages);
    let (mut now, mut last, mut taken, mut empty) = (0, 0, 0, 0);
    for number in 0..20_000 {
        link.offer(number * 1_000_000, 1200, 1, number);
        while let Some(at) = link.next_departure().filter(|&at| at < (number + 1) * 1_000_000) {
            now = at.max(now);
            match link.take(now) {
                Some(left) => {
                    assert!(left.at >= last && left.at <= now, "{} before {last}", left.at);
                    (last, taken) = (left.at, taken + 1);
                }
                None => empty += 1,
            }
        }
    }
    assert!(taken > 19_000);
    assert!(empty < 2 * taken, "{empty} empty wake-ups for {taken} packets");
}
