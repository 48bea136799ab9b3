use super::*;

fn direction(json: &str) -> Direction {
    serde_json::from_str(json).unwrap()
}

fn refused(json: &str) -> String {
    direction(json).check("d").unwrap_err().to_string()
}

#[test]
fn a_full_configuration_survives_the_way_through_json() {
    let text = include_str!("../../tests/full.json");
    let config: Config = serde_json::from_str(text).unwrap();
    config.check().unwrap();
    let again: Config = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
    assert_eq!(config, again);
}

#[test]
fn unknown_fields_are_refused() {
    let found = serde_json::from_str::<Direction>(r#"{"name": "d", "stages": {"delay_ms": 3}}"#);
    assert!(found.unwrap_err().to_string().contains("delay_ms"));
}

#[test]
fn impossible_profiles_are_refused_by_field() {
    for (stages, expected) in [
        (r#"{"reordering": {"probability": 0.1}}"#, "d.stages.reordering: "),
        (r#"{"loss": {"kind": "independent", "probability": 1.5}}"#, "d.stages.loss.probability: "),
        (r#"{"loss": {"kind": "independent", "probability": 0.5, "correlation": 1}}"#, "d.stages.loss.correlation: "),
        (r#"{"loss": {"kind": "pattern", "pattern": "012"}}"#, "d.stages.loss.pattern: "),
        (r#"{"loss": {"kind": "four-state", "p13": 0.6, "p14": 0.6}}"#, "d.stages.loss.p14: "),
        (r#"{"delay_us": -1}"#, "d.stages.delay_us: "),
        (r#"{"delay_us": 4, "jitter": {"jitter_us": 7}}"#, "d.stages.jitter.jitter_us: "),
        (r#"{"delay_us": 4, "jitter": {"jitter_us": 1, "correlation": -0.1}}"#, "d.stages.jitter.correlation: "),
        (r#"{"delay_us": 4, "jitter": {"jitter_us": 1, "distribution": "table"}}"#, "d.stages.jitter.table: "),
        (r#"{"rate": {}}"#, "d.stages.rate: "),
        (
            r#"{"rate": {"rate_bps": 8000, "codel": {"target_us": 9, "interval_us": 9}}}"#,
            "d.stages.rate.codel.target_us: ",
        ),
        (r#"{"rate": {"trace": {"at_ms": [3, 2]}}}"#, "d.stages.rate.trace.at_ms: "),
    ] {
        let found = refused(&format!(r#"{{"name": "d", "stages": {stages}}}"#));
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn netem_keeps_to_what_netem_has() {
    let found = refused(r#"{"name": "d", "model": "netem", "stages": {"rate": {"rate_bps": 8000, "queue_bytes": 9}}}"#);
    assert!(found.starts_with("d.stages.rate.queue_bytes: "), "{found}");
    let jitter = r#"{"name": "d", "model": "netem", "stages": {"delay_us": 4, "jitter": {"jitter_us": 7}}}"#;
    direction(jitter).check("d").unwrap();
}

#[test]
fn a_step_is_checked_with_what_stands_before_it() {
    let found = refused(
        r#"{"name": "d", "stages": {"delay_us": 9, "reordering": {"probability": 0.1}},
            "schedule": {"steps": [{"at_us": 5, "clear": ["delay_us"]}]}}"#,
    );
    assert!(found.starts_with("d.schedule.steps[0].set.reordering: "), "{found}");
}
