//! Turns the stages that the configuration states into state machines.

use crate::bernoulli::Bernoulli;
use crate::codel::Codel;
use crate::config::{Direction, Model, Stages, Step};
use crate::jitter::Jitter;
use crate::loss::Loss;
use crate::philox::{Purpose, Source};
use crate::rate::Rate;
use crate::wander::Wander;

/// The stages that hold for a time, as places in [`Machines`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    pub(crate) loss: Option<usize>,
    pub(crate) duplication: Option<usize>,
    pub(crate) corruption: Option<(usize, u32)>,
    pub(crate) rate: Option<usize>,
    pub(crate) delay_ns: i64,
    /// Jitter of its own for each packet.
    pub(crate) jitter: Option<usize>,
    /// Jitter in time.
    pub(crate) wander: Option<usize>,
    pub(crate) keep_order: bool,
    pub(crate) reordering: Option<(usize, u32)>,
    pub(crate) down: bool,
}

impl Phase {
    /// Whether the wire packets of a super-packet may fare differently.
    pub(crate) fn parts(&self) -> bool {
        let drawn = [self.loss, self.duplication, self.jitter, self.wander, self.rate];
        drawn.iter().any(Option::is_some) || self.corruption.is_some() || self.reordering.is_some()
    }
}

/// The state machines of all phases. A stage unchanged by a step keeps its state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machines {
    pub(crate) losses: Vec<Loss>,
    pub(crate) chances: Vec<Bernoulli>,
    pub(crate) jitters: Vec<Jitter>,
    pub(crate) wanders: Vec<Wander>,
    pub(crate) rates: Vec<(Rate, Option<Codel>)>,
}

/// Phases and machines of a direction that has been checked.
pub(crate) fn ready(direction: &Direction, source: &Source) -> (Vec<Phase>, Machines) {
    let mut machines = Machines::default();
    let mut stages = direction.stages.clone();
    let mut phases = vec![machines.phase(&stages, None, direction.model, source)];
    for step in direction.schedule.iter().flat_map(|schedule| &schedule.steps) {
        let next = stages.after(step);
        let before = phases.last().map(|phase| (phase, &stages, step));
        let phase = machines.phase(&next, before, direction.model, source);
        phases.push(phase);
        stages = next;
    }
    (phases, machines)
}

type Before<'a> = (&'a Phase, &'a Stages, &'a Step);

impl Machines {
    fn phase(&mut self, now: &Stages, before: Option<Before<'_>>, model: Model, source: &Source) -> Phase {
        let old = before.map(|(phase, _, _)| phase.clone()).unwrap_or_default();
        let was = before.map(|(_, stages, _)| stages);
        let mut chance =
            |p: f64, c: f64, purpose: Purpose| add(&mut self.chances, Bernoulli::new(model, p, c, source, purpose));

        let duplication = match &now.duplication {
            new if was.is_some_and(|was| was.duplication == *new) => old.duplication,
            new => new.map(|s| chance(s.probability, s.correlation, Purpose::Duplication)),
        };
        let corruption = match &now.corruption {
            new if was.is_some_and(|was| was.corruption == *new) => old.corruption,
            new => new.map(|s| {
                let spared = if model == Model::Netem { 0 } else { 14 };
                (chance(s.probability, s.correlation, Purpose::Corruption), s.skip_bytes.unwrap_or(spared))
            }),
        };
        let reordering = match &now.reordering {
            new if was.is_some_and(|was| was.reordering == *new) => old.reordering,
            new => new.map(|s| (chance(s.probability, s.correlation, Purpose::Reordering), s.gap)),
        };
        let loss = match &now.loss {
            new if was.is_some_and(|was| was.loss == *new) => old.loss,
            new => new.as_ref().map(|s| add(&mut self.losses, Loss::new(s, model, source))),
        };
        let (jitter, wander) = match &now.jitter {
            new if was.is_some_and(|was| was.jitter == *new) => (old.jitter, old.wander),
            None => (None, None),
            Some(s) => match s.correlation_time_us {
                Some(time) => (None, Some(add(&mut self.wanders, Wander::new(s, time, source)))),
                None => (Some(add(&mut self.jitters, Jitter::new(s, model, source))), None),
            },
        };
        let rate = match &now.rate {
            new if was.is_some_and(|was| was.rate == *new) => old.rate,
            new => new.as_ref().map(|s| add(&mut self.rates, (Rate::new(s), s.codel.map(Codel::new)))),
        };
        Phase {
            loss,
            duplication,
            corruption,
            rate,
            delay_ns: (now.delay_us.unwrap_or(0.0) * 1000.0).round() as i64,
            jitter,
            wander,
            keep_order: now.jitter.as_ref().is_none_or(|jitter| jitter.keep_order.unwrap_or(true)),
            reordering,
            down: before.map_or(old.down, |(_, _, step)| step.down.unwrap_or(old.down)),
        }
    }
}

fn add<T>(pool: &mut Vec<T>, item: T) -> usize {
    pool.push(item);
    pool.len() - 1
}
