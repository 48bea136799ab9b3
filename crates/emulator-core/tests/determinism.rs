//! The same seed gives the same decisions, whatever the timing; another seed, link or direction others.

use emulator_core::Link;
use emulator_core::config::Config;

const STAGES: &str = r#"{"delay_us": 4000, "jitter": {"jitter_us": 2000, "correlation": 0.25},
    "loss": {"kind": "gilbert-elliott", "p": 0.01, "r": 0.2}, "duplication": {"probability": 0.001},
    "corruption": {"probability": 0.001}, "reordering": {"probability": 0.005, "correlation": 0.25},
    "rate": {"rate_bps": 1000000000, "queue_packets": 30}}"#;

/// The log of all decisions, and the numbers of the packets that the loss stage dropped.
fn run(model: &str, seed: u64, link: u32, packets: u64, mut gap: impl FnMut(u64) -> u64) -> (u64, u64) {
    let stages = if model == "netem" { STAGES.replace(r#", "queue_packets": 30"#, "") } else { STAGES.into() };
    let limit = if model == "netem" { r#""limit_packets": 100000000,"# } else { "" };
    let json = format!(
        r#"{{"seed": {seed}, "link": {link}, "directions":
            [{{"name": "d", "model": "{model}", {limit} "stages": {stages}}}]}}"#
    );
    let config: Config = serde_json::from_str(&json).unwrap();
    let mut link = Link::new(&config, 0).unwrap();
    let mut now = 0;
    for n in 0..packets {
        now += gap(n);
        link.offer(now, 60 + (n * 37 % 1400) as u32, 1, n);
        while link.take(now).is_some() {}
    }
    let stats = link.stats();
    (stats.decisions, stats.dropped.loss)
}

#[test]
fn decisions_do_not_depend_on_time() {
    for model in ["stated", "netem"] {
        let packets = if model == "stated" { 10_000_000 } else { 1_000_000 };
        let steady = run(model, 5, 0, packets, |_| 12_000);
        let bursts = run(model, 5, 0, packets, |n| if n % 50 == 0 { 3_000_000 } else { 0 });
        assert_eq!(steady, bursts, "{model}");
    }
}

#[test]
fn seeds_and_links_have_their_own() {
    let base = run("stated", 5, 0, 10_000, |_| 12_000);
    assert_eq!(base, run("stated", 5, 0, 10_000, |_| 12_000));
    assert_ne!(base.0, run("stated", 6, 0, 10_000, |_| 12_000).0);
    assert_ne!(base.0, run("stated", 5 + (1 << 40), 0, 10_000, |_| 12_000).0);
    assert_ne!(base.0, run("stated", 5, 1, 10_000, |_| 12_000).0);
}
