//! Computes jitter as a process in time: what is added to the delay depends on the moment, not on the packet.

use crate::config::Jitter as Settings;
use crate::distribution::Shape;
use crate::normal;
use crate::philox::{Purpose, Source, open_unit};

/// Width of a cell of the grid in correlation times: at that lag the autocorrelation below is 1/e.
///
/// Over a random phase it is, for lags of u cells up to one, (1 - u/2) cos(pi u / 2) + sin(pi u / 2) / pi.
const CELL: f64 = 1.0 / 0.938_749_3;

/// A Gaussian copula in time: a smooth stationary normal process, mapped to the distribution by its quantiles.
///
/// The points of a grid have independent normal values x, and between two of them the process is
/// cos(a) x(k) + sin(a) x(k+1) while a runs from 0 to pi/2. Squares of cosine and sine add up to 1, so the process is
/// exactly standard normal at every moment. It has a slope everywhere (an Ornstein-Uhlenbeck process has none, and
/// packets close together would wait for each other at any rate). A value is computed from the time alone.
#[derive(Clone, Debug)]
pub(crate) struct Wander {
    shape: Shape,
    size_ns: f64,
    source: Source,
    cell_ns: f64,
    /// Where in its first cell the process begins, so that no moment is nearer to a point of the grid than others.
    phase: f64,
    /// The cell that was last asked for and the values at its ends.
    cell: (u64, f64, f64),
}

impl Wander {
    pub(crate) fn new(settings: &Settings, correlation_time_us: f64, source: &Source) -> Self {
        let mut wander = Self {
            shape: Shape::new(settings.distribution, &settings.table),
            size_ns: settings.jitter_us * 1000.0,
            source: *source,
            cell_ns: correlation_time_us * 1000.0 * CELL,
            phase: f64::from(source.start(Purpose::Wander)) / 4_294_967_296.0,
            cell: (0, 0.0, 0.0),
        };
        wander.cell = wander.ends(0);
        wander
    }

    /// Nanoseconds to add to the delay at `since` nanoseconds after the link's zero.
    #[inline]
    pub(crate) fn at(&mut self, since: u64) -> i64 {
        let z = self.latent(since);
        (self.shape.at_latent(z) * self.size_ns).round() as i64
    }

    #[inline]
    fn latent(&mut self, since: u64) -> f64 {
        let place = since as f64 / self.cell_ns + self.phase;
        let number = place as u64;
        if number != self.cell.0 {
            self.cell = self.ends(number);
        }
        let (sine, cosine) = ((place - number as f64) * std::f64::consts::FRAC_PI_2).sin_cos();
        cosine * self.cell.1 + sine * self.cell.2
    }

    fn ends(&self, number: u64) -> (u64, f64, f64) {
        let value = |n: u64| normal::quantile(open_unit(self.source.draw(Purpose::Wander, n, false)));
        (number, value(number), value(number + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Distribution;

    fn wander(seed: u64, correlation_time_us: f64) -> Wander {
        let settings = Settings {
            jitter_us: 1000.0,
            distribution: Distribution::Normal,
            table: vec![],
            correlation: 0.0,
            correlation_time_us: Some(correlation_time_us),
            keep_order: None,
        };
        Wander::new(&settings, correlation_time_us, &Source::new(seed, 0, 0))
    }

    #[test]
    fn is_standard_normal_at_every_moment_and_1_in_e_correlated_after_its_time() {
        const SEEDS: u64 = 40_000;
        for since in [0, 3_333_333, 7_000_000] {
            let (mut sum, mut square, mut product) = (0.0, 0.0, 0.0);
            for seed in 0..SEEDS {
                let mut wander = wander(seed, 10_000.0);
                let (now, then) = (wander.latent(since), wander.latent(since + 10_000_000));
                sum += now;
                square += now * now;
                product += now * then;
            }
            let n = SEEDS as f64;
            // Four standard errors each.
            assert!((sum / n).abs() < 0.02, "mean {}", sum / n);
            assert!((square / n - 1.0).abs() < 0.03, "variance {}", square / n);
            assert!((product / n - (-1.0f64).exp()).abs() < 0.025, "correlation {}", product / n);
        }
    }

    #[test]
    fn does_not_depend_on_when_it_is_asked() {
        let (mut one, mut other) = (wander(5, 700.0), wander(5, 700.0));
        let there: Vec<i64> = (0..1000).map(|n| one.at(n * 12_345)).collect();
        let back: Vec<i64> = (0..1000).rev().map(|n| other.at(n * 12_345)).collect();
        assert!(there.iter().eq(back.iter().rev()));
    }
}
