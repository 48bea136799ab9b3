use super::*;

pub(super) fn link(direction: &str) -> Link {
    let config: Config = serde_json::from_str(&format!(r#"{{"seed": 1, "directions": [{direction}]}}"#)).unwrap();
    Link::new(&config, 0).unwrap()
}

fn leave(link: &mut Link) -> Vec<(u64, u64)> {
    std::iter::from_fn(|| link.take(u64::MAX / 4))
        .filter(|d| d.outcome != Outcome::Dropped)
        .map(|d| (d.at, d.handle))
        .collect()
}

#[test]
fn serialisation_queue_and_tail_drop() {
    let mut link =
        link(r#"{"name": "d", "stages": {"rate": {"rate_bps": 8000000, "queue_packets": 2}, "delay_us": 5}}"#);
    let accepted: u32 = (0..5).map(|n| link.offer(0, 100, 1, n)).sum();
    assert_eq!(accepted, 3);
    assert_eq!(leave(&mut link), [(105_000, 0), (205_000, 1), (305_000, 2)]);
    assert_eq!(link.stats().dropped.queue, 2);
}

#[test]
fn a_schedule_changes_the_rate_of_what_waits() {
    let mut link = link(
        r#"{"name": "d", "stages": {"rate": {"rate_bps": 8000}},
            "schedule": {"steps": [{"at_us": 150000, "set": {"rate": {"rate_bps": 80000}}},
                                   {"at_us": 250000, "clear": ["rate"]}]}}"#,
    );
    for n in 0..30 {
        link.offer(0, 100, 1, n);
    }
    let times: Vec<u64> = leave(&mut link).iter().map(|(at, _)| at / 1_000_000).collect();
    assert_eq!(&times[..6], [100, 200, 210, 220, 230, 240]);
    assert_eq!(times.len(), 30);
    assert!(times[6..].iter().all(|&at| at == 250));
}

#[test]
fn a_link_flaps_and_comes_back() {
    let mut link = link(
        r#"{"name": "d", "blackouts": [{"start_us": 10, "length_us": 5, "every_us": 20}],
            "schedule": {"repeat_us": 100, "steps": [{"at_us": 40, "down": true}, {"at_us": 50, "down": false}]}}"#,
    );
    let through: Vec<u64> = (0..15).filter(|n| link.offer(n * 10_000 + 1000, 100, 1, *n) == 1).collect();
    assert_eq!(through, [0, 2, 6, 8, 10, 12]);
    link.restart(1_000_000);
    assert_eq!(link.offer(1_001_000, 100, 1, 0), 1);
    assert_eq!(link.offer(1_011_000, 100, 1, 0), 0);
}

#[test]
fn a_trace_begins_again_at_a_restart() {
    let at: Vec<String> = (1..=1000).map(|ms| ms.to_string()).collect();
    let mut link = link(&format!(
        r#"{{"name": "d", "stages": {{"rate": {{"trace": {{"at_ms": [{}], "bytes": 1514}}}}}}}}"#,
        at.join(",")
    ));
    link.offer(5_500_300_000, 1514, 1, 0);
    assert_eq!(leave(&mut link), [(5_501_000_000, 0)]);
    link.restart(6_000_000_000);
    link.offer(6_000_100_000, 1514, 1, 1);
    assert_eq!(leave(&mut link), [(6_001_000_000, 1)]);
}

#[test]
fn codel_spares_the_last_packet_however_long_packets_are() {
    let mut link = link(
        r#"{"name": "d", "stages": {"rate": {"rate_bps": 2000000, "codel": {"target_us": 5000, "interval_us": 100000}}}}"#,
    );
    for n in 0..3 {
        link.offer(0, 9015, 1, n);
    }
    for n in 1..200 {
        link.offer(n * 36_060_000, 9015, 1, n); // one begins, and one more waits behind it
    }
    assert_eq!(link.stats().dropped.codel, 0);
}

#[test]
fn order_is_kept_unless_asked_otherwise() {
    for (keep, expected) in [("true", true), ("false", false)] {
        let mut link = link(&format!(
            r#"{{"name": "d", "stages": {{"delay_us": 1000, "jitter": {{"jitter_us": 900, "keep_order": {keep}}}}}}}"#
        ));
        for n in 0..100 {
            link.offer(n * 10_000, 100, 1, n);
        }
        assert_eq!(leave(&mut link).is_sorted_by_key(|(_, handle)| *handle), expected);
        assert_eq!(link.stats().held > 0, expected);
    }
}

#[test]
fn reordered_packets_skip_the_delay_once_in_a_gap() {
    let mut link = link(r#"{"name": "d", "stages": {"delay_us": 1000, "reordering": {"probability": 1, "gap": 5}}}"#);
    for n in 0..10 {
        link.offer(0, 100, 1, n);
    }
    let first: Vec<u64> = leave(&mut link).iter().filter(|(at, _)| *at == 0).map(|(_, n)| *n).collect();
    assert_eq!(first, [4, 9]);
}

#[test]
fn one_bit_behind_the_header_is_inverted() {
    let mut link = link(r#"{"name": "d", "stages": {"corruption": {"probability": 1}}}"#);
    for n in 0..1000 {
        link.offer(n, 15, 1, n);
        let Some(Departure { outcome: Outcome::Corrupted(bit), .. }) = link.take(n) else { panic!() };
        assert!((14 * 8..15 * 8).contains(&bit));
    }
}

#[test]
fn codel_keeps_a_standing_queue_short() {
    let stages = |codel: &str| {
        format!(r#"{{"name": "d", "stages": {{"rate": {{"rate_bps": 12000000, "queue_packets": 1000{codel}}}}}}}"#)
    };
    let wait = |direction: &str| {
        let mut link = link(direction);
        // 1.05 times the rate for 20 s; CoDel must find the excess.
        for n in 0..21_000 {
            link.offer(n * 952_381, 1500, 1, n);
        }
        let stats = link.stats();
        assert!(link.in_flight() > 0 || stats.dropped.codel > 0);
        stats.queued_us.mean
    };
    let tail = wait(&stages(""));
    let codel = wait(&stages(r#", "codel": {}"#));
    assert!(tail > 300_000.0 && codel < 60_000.0, "{tail} {codel}");
}

#[test]
fn nothing_shortens_the_propagation() {
    for model in ["stated", "netem"] {
        let direction = |more: &str| {
            format!(
                r#"{{"name": "d", "model": "{model}"{more}, "stages": {{
                    "rate": {{"rate_bps": 80000000{}}}, "delay_us": 1000, "jitter": {{"jitter_us": 900}},
                    "reordering": {{"probability": 0.3}}}}}}"#,
                if model == "stated" { r#", "queue_packets": 90"# } else { "" }
            )
        };
        let (mut near, mut far) = (link(&direction("")), link(&direction(r#", "propagation_us": 250"#)));
        assert!(!link(r#"{"name": "d", "propagation_us": 250}"#).is_transparent());
        let mut left = [vec![], vec![]];
        for n in 0..100 {
            for (link, left) in [&mut near, &mut far].into_iter().zip(&mut left) {
                link.offer(n * 100_000, 1000, 1, n);
                // The caller may ask at any time and wakes up at the times that the link names.
                while let Some(at) = link.next_departure().filter(|at| *at <= (n + 1) * 100_000) {
                    left.extend(std::iter::from_fn(|| link.take(at)).map(|d| (d.at, d.handle)));
                    assert!(link.next_departure().is_none_or(|next| next > at));
                }
            }
        }
        let [mut before, mut after] = left;
        before.extend(leave(&mut near));
        after.extend(leave(&mut far));
        assert_eq!(after, before.iter().map(|(at, handle)| (at + 250_000, *handle)).collect::<Vec<_>>());
    }
}

#[test]
fn netems_limit_does_not_count_what_is_in_the_propagation() {
    let direction = |more: &str| format!(r#"{{"name": "d", "model": "netem", "limit_packets": 1{more}}}"#);
    let mut far = link(&direction(r#", "propagation_us": 1000"#));
    assert_eq!((0..9).map(|n| far.offer(n * 1000, 100, 1, n)).sum::<u32>(), 9);
    assert_eq!(far.take(999_999), None);
    assert_eq!(leave(&mut far).len(), 9);
}

#[test]
fn super_packets_need_parting_only_where_fates_may_differ() {
    assert!(!link(r#"{"name": "d", "stages": {"delay_us": 5}}"#).splits_super_packets());
    assert!(
        link(r#"{"name": "d", "stages": {"loss": {"kind": "independent", "probability": 0.1}}}"#)
            .splits_super_packets()
    );
    assert!(link(r#"{"name": "d"}"#).is_transparent());
    assert!(!link(r#"{"name": "d", "stages": {"delay_us": 5}}"#).is_transparent());
}
