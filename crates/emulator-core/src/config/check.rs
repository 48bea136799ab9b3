//! Refuses configurations that cannot be delivered: says which field is wrong, and what would be right.

use std::fmt;

use super::{Config, Direction, Distribution, Jitter, Loss, Model, Rate, Stages};

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Where, as a path through the JSON: `directions[0].stages.loss.probability`.
    pub field: String,
    /// What is wrong and what would be right.
    pub why: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.why)
    }
}

impl std::error::Error for Invalid {}

type Checked = Result<(), Invalid>;

/// The longest time a field in microseconds may hold: ten days, far inside a `u64` of nanoseconds.
const LONGEST_US: u64 = 10 * 86_400 * 1_000_000;

/// The shortest time in which a process in time may change: a link that was idle for days still catches up at once.
const SHORTEST_US: f64 = 100.0;

/// Every ordered pair of the 64 ports that a link may have.
const MOST_DIRECTIONS: usize = 64 * 63;

/// The most that may be added to a packet or a cell, and the largest cell: beyond any framing there is.
const MOST_BYTES: i64 = 10_000;

fn refuse(field: impl Into<String>, why: impl Into<String>) -> Checked {
    Err(Invalid { field: field.into(), why: why.into() })
}

fn probability(at: &str, name: &str, value: f64) -> Checked {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    refuse(format!("{at}.{name}"), format!("{value} is not a probability; it must be from 0 to 1 (1 % is 0.01)"))
}

fn correlation(at: &str, value: f64) -> Checked {
    if (0.0..1.0).contains(&value) {
        return Ok(());
    }
    let why = format!("{value} cannot be delivered as a correlation; it must be from 0 to below 1 (25 % is 0.25)");
    refuse(format!("{at}.correlation"), why)
}

fn time(at: &str, name: &str, value: u64) -> Checked {
    if value <= LONGEST_US {
        return Ok(());
    }
    refuse(format!("{at}.{name}"), format!("{value} us is beyond ten days ({LONGEST_US} us)"))
}

impl Config {
    /// Refuses what cannot be delivered.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.directions.is_empty() {
            return refuse("directions", "a link needs at least one direction");
        }
        if self.directions.len() > MOST_DIRECTIONS {
            return refuse("directions", format!("a link has at most {MOST_DIRECTIONS}"));
        }
        for (number, direction) in self.directions.iter().enumerate() {
            direction.check(&format!("directions[{number}]"))?;
        }
        Ok(())
    }
}

impl Direction {
    /// Refuses what cannot be delivered; `at` is the path of this direction.
    pub fn check(&self, at: &str) -> Result<(), Invalid> {
        let netem = self.model == Model::Netem;
        if let Some(limit) = self.limit_packets {
            if !netem {
                let why = "belongs to the netem model; in the stated model bound the queue with rate.queue_packets";
                return refuse(format!("{at}.limit_packets"), why);
            }
            if limit == 0 {
                return refuse(format!("{at}.limit_packets"), "0 would drop every packet; leave it out for 1000");
            }
        }
        let propagation_us = self.propagation_us.unwrap_or(0.0);
        if !(0.0..=LONGEST_US as f64).contains(&propagation_us) {
            let why = format!("{propagation_us} is not a delay; it must be 0 to ten days");
            return refuse(format!("{at}.propagation_us"), why);
        }
        self.stages.check(&format!("{at}.stages"), netem)?;
        for (number, blackout) in self.blackouts.iter().enumerate() {
            let at = format!("{at}.blackouts[{number}]");
            time(&at, "start_us", blackout.start_us)?;
            time(&at, "length_us", blackout.length_us)?;
            if let Some(every) = blackout.every_us {
                time(&at, "every_us", every)?;
                if every == 0 || every < blackout.length_us {
                    return refuse(format!("{at}.every_us"), "must not be shorter than length_us, and above 0");
                }
            }
        }
        self.check_schedule(&format!("{at}.schedule"), netem)
    }

    fn check_schedule(&self, at: &str, netem: bool) -> Checked {
        let Some(schedule) = &self.schedule else { return Ok(()) };
        let mut stages = self.stages.clone();
        let mut before = None;
        for (number, step) in schedule.steps.iter().enumerate() {
            let at = format!("{at}.steps[{number}]");
            time(&at, "at_us", step.at_us)?;
            if before.is_some_and(|before| before >= step.at_us) {
                return refuse(format!("{at}.at_us"), "must be later than the step before");
            }
            if schedule.repeat_us.is_some_and(|repeat| step.at_us >= repeat) {
                return refuse(format!("{at}.at_us"), "must be earlier than repeat_us, or it never comes");
            }
            before = Some(step.at_us);
            stages = stages.after(step);
            stages.check(&format!("{at}.set"), netem)?;
        }
        match schedule.repeat_us {
            Some(0) => refuse(format!("{at}.repeat_us"), "must be above 0; leave it out to run the schedule once"),
            Some(repeat) => time(at, "repeat_us", repeat),
            None => Ok(()),
        }
    }
}

impl Stages {
    fn check(&self, at: &str, netem: bool) -> Checked {
        if let Some(loss) = &self.loss {
            check_loss(loss, &format!("{at}.loss"), netem)?;
        }
        if let Some(chance) = &self.duplication {
            let at = format!("{at}.duplication");
            probability(&at, "probability", chance.probability)?;
            correlation(&at, chance.correlation)?;
        }
        if let Some(chance) = &self.corruption {
            let at = format!("{at}.corruption");
            probability(&at, "probability", chance.probability)?;
            correlation(&at, chance.correlation)?;
        }
        if let Some(rate) = &self.rate {
            check_rate(rate, &format!("{at}.rate"), netem)?;
        }
        let delay_us = self.delay_us.unwrap_or(0.0);
        if !(0.0..=LONGEST_US as f64).contains(&delay_us) {
            return refuse(format!("{at}.delay_us"), format!("{delay_us} is not a delay; it must be 0 to ten days"));
        }
        if let Some(jitter) = &self.jitter {
            check_jitter(jitter, delay_us, &format!("{at}.jitter"), netem)?;
        }
        if let Some(reordering) = &self.reordering {
            let at = format!("{at}.reordering");
            probability(&at, "probability", reordering.probability)?;
            correlation(&at, reordering.correlation)?;
            if reordering.gap == 0 {
                return refuse(format!("{at}.gap"), "must be at least 1 (1: every packet may be reordered)");
            }
            if delay_us == 0.0 {
                return refuse(
                    at,
                    "a reordered packet overtakes those that are delayed, so delay_us must be above 0; \
                     set delay_us or leave reordering out",
                );
            }
        }
        Ok(())
    }
}

fn check_loss(loss: &Loss, at: &str, netem: bool) -> Checked {
    match loss {
        Loss::Independent { probability: p, correlation: c } => {
            probability(at, "probability", *p)?;
            correlation(at, *c)
        }
        Loss::GilbertElliott { p, r, h, k } => {
            probability(at, "p", *p)?;
            probability(at, "r", r.unwrap_or(1.0 - p))?;
            probability(at, "h", *h)?;
            probability(at, "k", *k)
        }
        Loss::FourState { p13, p31, p32, p23, p14 } => {
            let p31 = p31.unwrap_or(1.0 - p13);
            for (name, value) in [("p13", *p13), ("p31", p31), ("p32", *p32), ("p23", *p23), ("p14", *p14)] {
                probability(at, name, value)?;
            }
            if p13 + p14 > 1.0 {
                return refuse(format!("{at}.p14"), "p13 and p14 both leave state 1: their sum must not exceed 1");
            }
            if p31 + p32 > 1.0 {
                return refuse(format!("{at}.p32"), "p31 and p32 both leave state 3: their sum must not exceed 1");
            }
            Ok(())
        }
        Loss::Bursts { burst_us, every_us, probability: inside, outside } => {
            if netem {
                return refuse(format!("{at}.kind"), "netem has no bursts in time; use the stated model");
            }
            probability(at, "probability", *inside)?;
            probability(at, "outside", *outside)?;
            if !(SHORTEST_US..=LONGEST_US as f64).contains(burst_us) {
                let why = format!("{burst_us} us is not a burst; it must be from {SHORTEST_US} us to ten days");
                return refuse(format!("{at}.burst_us"), why);
            }
            if !(burst_us + SHORTEST_US..=LONGEST_US as f64).contains(every_us) {
                let why =
                    format!("must leave at least {SHORTEST_US} us between bursts of burst_us, and end at ten days");
                return refuse(format!("{at}.every_us"), why);
            }
            Ok(())
        }
        Loss::Pattern { pattern, .. } => {
            if pattern.is_empty() || pattern.bytes().any(|mark| mark != b'0' && mark != b'1') {
                return refuse(format!("{at}.pattern"), "must be a text of 0 (delivered) and 1 (lost), not empty");
            }
            Ok(())
        }
    }
}

fn check_rate(rate: &Rate, at: &str, netem: bool) -> Checked {
    match (rate.rate_bps, &rate.trace) {
        (Some(_), Some(_)) => return refuse(at, "rate_bps and trace exclude each other"),
        (None, None) => return refuse(at, "needs rate_bps or trace"),
        (Some(bps), None) if bps < 8 || (netem && bps % 8 != 0) => {
            let why = if bps < 8 { "must be at least 8 bit/s" } else { "netem counts whole bytes: a multiple of 8" };
            return refuse(format!("{at}.rate_bps"), why);
        }
        _ => {}
    }
    if netem {
        for (name, given) in [
            ("trace", rate.trace.is_some()),
            ("queue_bytes", rate.queue_bytes.is_some()),
            ("queue_packets", rate.queue_packets.is_some()),
            ("codel", rate.codel.is_some()),
        ] {
            if given {
                return refuse(format!("{at}.{name}"), "netem has none; use limit_packets, or the stated model");
            }
        }
    }
    if let Some(trace) = &rate.trace {
        let at = format!("{at}.trace");
        if !trace.at_ms.is_sorted() || trace.at_ms.last().is_none_or(|&last| last == 0) {
            return refuse(format!("{at}.at_ms"), "must be ascending and end above 0, where the trace begins again");
        }
        if trace.at_ms.last().is_some_and(|&last| last > LONGEST_US / 1000) {
            return refuse(format!("{at}.at_ms"), "must end within ten days");
        }
        if trace.bytes == 0 {
            return refuse(format!("{at}.bytes"), "an opportunity must carry at least one byte");
        }
    }
    if rate.queue_packets == Some(0) || rate.queue_bytes == Some(0) {
        return refuse(at, "a queue of 0 drops whatever meets a packet in transmission; leave it out for no bound");
    }
    if let Some(codel) = rate.codel {
        let at = format!("{at}.codel");
        time(&at, "interval_us", codel.interval_us)?;
        if codel.target_us == 0 || codel.target_us >= codel.interval_us {
            return refuse(format!("{at}.target_us"), "must be above 0 and below interval_us");
        }
    }
    for (name, bytes) in [
        ("overhead_bytes", i64::from(rate.overhead_bytes)),
        ("cell_bytes", i64::from(rate.cell_bytes)),
        ("cell_overhead_bytes", i64::from(rate.cell_overhead_bytes)),
    ] {
        if bytes.abs() > MOST_BYTES {
            return refuse(format!("{at}.{name}"), format!("{bytes} is beyond any framing ({MOST_BYTES} bytes)"));
        }
    }
    if i64::from(rate.cell_overhead_bytes) + i64::from(rate.cell_bytes) < 0 {
        return refuse(format!("{at}.cell_overhead_bytes"), "must not make a cell shorter than nothing");
    }
    Ok(())
}

fn check_jitter(jitter: &Jitter, delay_us: f64, at: &str, netem: bool) -> Checked {
    let size = jitter.jitter_us;
    if !(0.0..=LONGEST_US as f64).contains(&size) {
        return refuse(format!("{at}.jitter_us"), format!("{size} is not a jitter; it must be from 0 to ten days"));
    }
    if netem && size > f64::from(i32::MAX) / 1000.0 {
        return refuse(format!("{at}.jitter_us"), "netem's jitter ends at 2147483.647 us");
    }
    correlation(at, jitter.correlation)?;
    if let Some(time) = jitter.correlation_time_us {
        check_in_time(jitter, time, at, netem)?;
    }
    if netem && jitter.keep_order == Some(true) {
        return refuse(
            format!("{at}.keep_order"),
            "netem's jitter reorders and cannot keep the order; leave it out, or use the stated model",
        );
    }
    if (jitter.distribution == Distribution::Table) == jitter.table.is_empty() {
        let why = "must hold values if, and only if, distribution is \"table\"";
        return refuse(format!("{at}.table"), why);
    }
    if !jitter.table.is_sorted() || jitter.table.iter().any(|value| !value.is_finite()) {
        return refuse(format!("{at}.table"), "must be finite numbers in ascending order");
    }
    if jitter.table.iter().any(|value| (value * size).abs() > LONGEST_US as f64) {
        return refuse(format!("{at}.table"), "times jitter_us must be within ten days");
    }
    // netem lets a negative delay be none; the stated model cannot then deliver what is stated.
    let least = match jitter.distribution {
        Distribution::Uniform => -1.0,
        Distribution::Table => jitter.table[0],
        // The minimum of the truncated pareto is 0.693 deviations below its mean (see `shape`).
        Distribution::Pareto => -0.693,
        // No minimum: what falls below zero is reported as clipped.
        Distribution::Normal | Distribution::Paretonormal => 0.0,
    };
    if !netem && delay_us + least * size < 0.0 {
        return refuse(
            format!("{at}.jitter_us"),
            format!(
                "would need delays below zero: delay_us must be at least {}; raise it, lower jitter_us, \
                 or use model \"netem\", where a negative delay is none",
                -least * size
            ),
        );
    }
    Ok(())
}

fn check_in_time(jitter: &Jitter, time: f64, at: &str, netem: bool) -> Checked {
    let field = format!("{at}.correlation_time_us");
    if netem {
        return refuse(field, "netem's jitter is drawn for each packet; leave it out, or use the stated model");
    }
    if !(SHORTEST_US..=LONGEST_US as f64).contains(&time) {
        return refuse(field, format!("{time} us must be from {SHORTEST_US} us to ten days"));
    }
    if jitter.correlation > 0.0 {
        return refuse(format!("{at}.correlation"), "is from packet to packet; with correlation_time_us leave it out");
    }
    if jitter.distribution == Distribution::Table {
        return refuse(field, "a table has steps, and jitter in time is smooth; take another distribution");
    }
    Ok(())
}
