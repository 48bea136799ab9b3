//! The search on a model of a path.

use super::*;

/// A queue of `room` datagrams before a link of `rate` datagrams a second that loses every `loses`th.
struct Model {
    rate: f64,
    room: f64,
    loses: Option<u64>,
    most: f64,
    deaf: bool,
    mishaps: Vec<usize>,
    /// In these trials a burst of the path takes a fifth of what is sent.
    bursts: fn(usize) -> bool,
    trials: Vec<f64>,
}

fn model(rate: f64) -> Model {
    Model {
        rate,
        room: 0.0,
        loses: None,
        most: f64::INFINITY,
        deaf: false,
        mishaps: Vec::new(),
        bursts: |_| false,
        trials: Vec::new(),
    }
}

impl Path for Model {
    fn trial(&mut self, asked: f64, seconds: f64) -> Result<Trial, String> {
        self.trials.push(asked);
        let offered = asked.min(self.most);
        let sent = (offered * seconds).round().max(1.0);
        let excess = (sent - self.rate * seconds).max(0.0);
        let queued = excess.min(self.room);
        let mut lost = (excess - queued).ceil() as u64;
        if let Some(loses) = self.loses {
            lost += sent as u64 / loses;
        }
        if self.mishaps.contains(&self.trials.len()) {
            lost += 1;
        }
        if (self.bursts)(self.trials.len()) {
            lost += sent as u64 / 5;
        }
        let growth = Some(0.9 * queued / self.rate);
        let dropped = if self.deaf { lost } else { 0 };
        let (asked, sent) = (Some(asked), sent as u64);
        let delivered = offered.min(self.rate);
        Ok(Trial { asked, offered, delivered, seconds, sent, lost, growth, dropped, ..Trial::default() })
    }
}

const LIMITS: Limits = Limits { trial: 0.3, confirm: 1.0, resolution: 0.01, path_loss: 0.0, again: 0 };

fn highest(model: &mut Model, bound: f64, guess: f64) -> Found {
    let most = model.most;
    RateSearch::new(model, LIMITS, most).highest(bound, guess).unwrap()
}

fn rate(found: &Found) -> f64 {
    found.confirmed.as_ref().map_or(0.0, |trial| trial.offered)
}

fn close(found: &Found, truth: f64) -> bool {
    (rate(found) / truth - 1.0).abs() <= 0.012
}

#[test]
fn finds_the_rate_from_any_guess() {
    for guess in [10.0, 500.0, 49_000.0, 50_000.0, 51_000.0, 3e6] {
        let mut model = model(50_000.0);
        let found = highest(&mut model, 0.0, guess);
        assert!(close(&found, 50_000.0), "{guess}: {found:?}");
        assert!(found.limit.is_none() && found.failed.unwrap() >= rate(&found));
        assert!(model.trials.len() <= 2 * MOST_RATES);
    }
}

#[test]
fn takes_few_trials_from_a_good_guess() {
    let mut model = model(50_000.0);
    highest(&mut model, 0.0, 49_900.0);
    assert!(model.trials.len() <= 8, "{:?}", model.trials);
}

#[test]
fn is_not_deceived_by_a_queue_that_swallows_a_whole_trial() {
    let mut model = Model { room: 100_000.0, ..model(50_000.0) };
    assert!(close(&highest(&mut model, 0.0, 60_000.0), 50_000.0));
}

#[test]
fn allows_the_share_that_it_is_told() {
    let found = highest(&mut model(50_000.0), 0.02, 50_000.0);
    assert!(close(&found, 50_000.0 / 0.98), "{found:?}");
}

#[test]
fn trials_for_one_bound_serve_the_next() {
    let mut model = model(50_000.0);
    let mut search = RateSearch::new(&mut model, LIMITS, f64::INFINITY);
    assert!(close(&search.highest(0.0, 40_000.0).unwrap(), 50_000.0));
    let before = search.known.len();
    assert!(close(&search.highest(0.001, 40_000.0).unwrap(), 50_000.0));
    assert!(search.known.len() - before <= 3);
}

#[test]
fn says_that_the_sender_was_the_limit() {
    for (guess, most) in [(20_000.0, 20_000.0), (30_000.0, 40_000.0)] {
        let mut model = Model { most: 20_000.0, ..model(50_000.0) };
        let found = RateSearch::new(&mut model, LIMITS, most).highest(0.0, guess).unwrap();
        assert!(close(&found, 20_000.0) && found.failed.is_none(), "{found:?}");
        assert_eq!(found.limit, Some(Limit::Sender));
    }
}

#[test]
fn looks_again_at_what_the_sender_can_offer_before_it_says_so() {
    let mut model = Model { most: 200_000.0, ..model(50_000.0) };
    let found = RateSearch::new(&mut model, LIMITS, 10_000.0).highest(0.0, 10_000.0).unwrap();
    assert!(close(&found, 50_000.0), "{found:?}");
    assert!(found.limit.is_none() && (50_000.0..=100_000.0).contains(&found.offered_max), "{found:?}");
}

#[test]
fn says_that_the_receiver_was_the_limit() {
    let mut model = Model { deaf: true, ..model(50_000.0) };
    let found = highest(&mut model, 0.0, 60_000.0);
    assert!(close(&found, 50_000.0), "{found:?}");
    assert_eq!(found.limit, Some(Limit::Receiver));
}

#[test]
fn one_mishap_does_not_decide() {
    for trial in 1..6 {
        let mut model = Model { mishaps: vec![trial], ..model(50_000.0) };
        assert!(close(&highest(&mut model, 0.0, 49_900.0), 50_000.0), "mishap in trial {trial}");
    }
}

#[test]
fn a_path_that_always_loses_has_no_rate_without_loss() {
    let mut model = Model { loses: Some(100), ..model(50_000.0) };
    let found = highest(&mut model, 0.0, 50_000.0);
    assert!(rate(&found) < 0.01 * 50_000.0, "{found:?}");
}

#[test]
fn what_the_path_always_loses_may_be_granted() {
    let mut model = Model { loses: Some(100), ..model(50_000.0) };
    let limits = Limits { path_loss: 0.01, ..LIMITS };
    let found = RateSearch::new(&mut model, limits, f64::INFINITY).highest(0.001, 50_000.0).unwrap();
    assert!(close(&found, 50_000.0), "{found:?}");
}

#[test]
fn bursts_of_the_paths_own_loss_are_no_limit_of_its_rate_where_that_is_granted() {
    // Four trials of ten, two of them in a row.
    let bursts = |number: usize| matches!(number % 10, 1 | 4 | 5 | 8);
    let limits = Limits { path_loss: 0.02, again: 2, ..LIMITS };
    for room in [0.0, 5000.0] {
        let mut granted = Model { bursts, room, ..model(50_000.0) };
        let found = RateSearch::new(&mut granted, limits, f64::INFINITY).highest(0.001, 30_000.0).unwrap();
        assert!((rate(&found) / 51_000.0 - 1.0).abs() < 0.035, "{found:?} {:?}", granted.trials);
    }
    let mut refused = Model { bursts, ..model(50_000.0) };
    let found = RateSearch::new(&mut refused, LIMITS, f64::INFINITY).highest(0.001, 30_000.0).unwrap();
    assert!(rate(&found) < 30_000.0, "{found:?}");
}

#[test]
fn the_ascent_asks_a_path_for_no_more_than_twice_what_it_carries_or_so() {
    for truth in [3000.0, 50_000.0, 400_000.0] {
        for (loses, room) in [(None, 0.0), (Some(50), 0.0), (None, 1e6)] {
            let mut model = Model { loses, room, ..model(truth) };
            let found = ascend(&mut model, 0.1).unwrap();
            let most = model.trials.iter().fold(0.0, |most: f64, rate| most.max(*rate));
            assert!(most <= 2.0 * truth / KEPT, "{truth}: {:?}", model.trials);
            assert!((found.last.delivered / truth - 1.0).abs() < 0.01, "{truth}: {:?}", found.last);
        }
    }
}

#[test]
fn the_ascent_ends_with_a_sender_that_cannot_offer_more() {
    let mut model = Model { most: 70_000.0, ..model(1e9) };
    let found = ascend(&mut model, 0.1).unwrap();
    assert_eq!(found.offered_max, 70_000.0);
    assert!(model.trials.len() <= 8);
}

#[test]
fn a_search_never_asks_for_all_that_a_sender_can_send() {
    let mut model = model(50_000.0);
    let most = ascend(&mut model, 0.1).unwrap();
    RateSearch::new(&mut model, LIMITS, most.offered_max).highest(0.0, most.last.delivered).unwrap();
    assert!(model.trials.iter().all(|rate| *rate <= 2.7 * 50_000.0), "{:?}", model.trials);
}
