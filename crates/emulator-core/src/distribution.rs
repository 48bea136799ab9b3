//! Computes the shapes of jitter: inverse distribution functions, and netem's tables from their formulas.

use crate::config::Distribution;
use crate::normal;

/// netem's `NETEM_DIST_SCALE`: this value in a table is one sigma.
pub const SCALE: i64 = 8192;

/// Shape of netem's pareto distribution.
const PARETO: f64 = 3.0;

/// The stated model cuts the pareto distribution at ten times its minimum. Uncut, its fourth moment does not
/// exist and no sample's deviation or correlation would settle. A delay of 2000 deviations is of no use.
const PARETO_END: f64 = 10.0;

/// The jitter's inverse distribution function in units of `jitter_us`: uniform reaches from -1 to 1, the
/// others (a table excepted) have mean 0 and deviation 1.
#[derive(Clone, Debug)]
pub struct Shape {
    kind: Distribution,
    table: Box<[f64]>,
    mean: f64,
    deviation: f64,
}

impl Shape {
    /// The shape of a distribution; `table` only matters for [`Distribution::Table`].
    pub fn new(kind: Distribution, table: &[f64]) -> Self {
        let mut shape = Self { kind, table: table.into(), mean: 0.0, deviation: 1.0 };
        if matches!(kind, Distribution::Pareto | Distribution::Paretonormal) {
            // Midpoint rule over the latent normal variable, whose weights fade on both sides.
            let (mut sum, mut squares) = (0.0, 0.0);
            for (weight, z) in latent_grid() {
                let x = shape.raw(normal::cdf(z), z);
                sum += weight * x;
                squares += weight * x * x;
            }
            shape.mean = sum;
            shape.deviation = (squares - sum * sum).sqrt();
        }
        shape
    }

    /// The value at quantile `u` in (0, 1), in units of `jitter_us`.
    #[inline]
    pub fn at(&self, u: f64) -> f64 {
        match self.kind {
            Distribution::Uniform => 2.0 * u - 1.0,
            Distribution::Normal => normal::quantile(u),
            Distribution::Table => self.raw(u, 0.0),
            Distribution::Pareto => (pareto(u) - self.mean) / self.deviation,
            Distribution::Paretonormal => (self.raw(u, normal::quantile(u)) - self.mean) / self.deviation,
        }
    }

    /// The value where a standard normal variable has the value `z`: `at(cdf(z))` without the way through it.
    #[inline]
    pub fn at_latent(&self, z: f64) -> f64 {
        match self.kind {
            Distribution::Normal => z,
            Distribution::Paretonormal => (self.raw(normal::cdf(z), z) - self.mean) / self.deviation,
            _ => self.at(normal::cdf(z)),
        }
    }

    fn raw(&self, u: f64, z: f64) -> f64 {
        match self.kind {
            Distribution::Uniform => 2.0 * u - 1.0,
            Distribution::Normal => z,
            Distribution::Pareto => pareto(u),
            // netem's: pareto is brought to units of 4/3, and three quarters of it are taken.
            Distribution::Paretonormal => 0.25 * z + (pareto(u) - 1.5),
            Distribution::Table => {
                let last = self.table.len() - 1;
                self.table[((u * self.table.len() as f64) as usize).min(last)]
            }
        }
    }
}

/// Inverse distribution function of the pareto distribution on 1 to [`PARETO_END`].
fn pareto(u: f64) -> f64 {
    let kept = 1.0 - PARETO_END.powf(-PARETO);
    (1.0 - u * kept).powf(-1.0 / PARETO)
}

/// Points and weights that integrate over a standard normal variable.
pub(crate) fn latent_grid() -> impl Iterator<Item = (f64, f64)> {
    const STEPS: i32 = 16_000;
    const REACH: f64 = 8.0;
    let width = 2.0 * REACH / f64::from(STEPS);
    let density = (2.0 * std::f64::consts::PI).sqrt().recip();
    (0..STEPS).map(move |step| {
        let z = -REACH + (f64::from(step) + 0.5) * width;
        (density * (-z * z / 2.0).exp() * width, z)
    })
}

/// The table that `tc` would load into netem, in units of [`SCALE`]; none for uniform.
///
/// The normal, pareto and paretonormal tables follow the formulas of iproute2's generators (`netem/normal.c`,
/// `netem/pareto.c`, `netem/paretonormal.c`), which go back to NIST Net: 4096 equally likely values.
pub fn netem_table(kind: Distribution, table: &[f64]) -> Option<Box<[i16]>> {
    let clip = |value: f64| value.round_ties_even().clamp(f64::from(i16::MIN), f64::from(i16::MAX)) as i16;
    match kind {
        Distribution::Uniform => None,
        Distribution::Normal => Some(netem_normal().iter().map(|&value| clip(f64::from(value))).collect()),
        Distribution::Pareto => Some((0..4096).map(|i| netem_pareto(4 * i) as i16).collect()),
        Distribution::Paretonormal => {
            let normal = netem_normal();
            // Integer division towards zero, as in C.
            let value = |(i, &normal): (usize, &i32)| ((normal + 3 * netem_pareto(4 * i as u32)) / 4) as i16;
            Some(normal.iter().enumerate().map(value).collect())
        }
        Distribution::Table => Some(table.iter().map(|value| clip(value * SCALE as f64)).collect()),
    }
}

/// netem's pareto value at quantile `i`/16384, clipped at 4 sigma.
fn netem_pareto(i: u32) -> i32 {
    let rest = f64::from(65_536 - 4 * i) / 65_536.0;
    let value = (rest.powf(-1.0 / PARETO) - 1.5) * (4.0 / 3.0) * SCALE as f64;
    value.min(32_767.0).round_ties_even() as i32
}

/// netem's normal values: for each 16384th of probability the last grid point that rounds to it; every fourth.
fn netem_normal() -> Vec<i32> {
    const SIZE: usize = 16_384;
    let mut table = vec![0.0; SIZE + 1];
    let mut x = -10.0;
    while x < 10.05 {
        let place = (SIZE as f64 * normal::cdf(x)).round_ties_even() as usize;
        table[place] = x;
        x += 0.000_05;
    }
    table[..SIZE].iter().step_by(4).map(|x| (x * SCALE as f64).round_ties_even() as i32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(table: &[i16]) -> (f64, f64) {
        let n = table.len() as f64;
        let mean = table.iter().map(|&v| f64::from(v)).sum::<f64>() / n / SCALE as f64;
        let square = table.iter().map(|&v| (f64::from(v) / SCALE as f64 - mean).powi(2)).sum::<f64>() / n;
        (mean, square.sqrt())
    }

    #[test]
    fn netem_tables_have_the_moments_of_the_installed_ones() {
        // Mean and deviation in sigma, computed from Debian's /usr/lib/tc/*.dist.
        for (kind, mean, deviation) in [
            (Distribution::Normal, 0.0, 1.0),
            (Distribution::Pareto, -0.033, 0.820),
            (Distribution::Paretonormal, -0.025, 0.83),
        ] {
            let table = netem_table(kind, &[]).unwrap();
            let (m, d) = moments(&table);
            assert_eq!(table.len(), 4096);
            assert!((m - mean).abs() < 5e-3 && (d - deviation).abs() < 5e-3, "{kind:?}: {m} {d}");
        }
    }

    #[test]
    fn shapes_have_mean_0_and_deviation_1() {
        for kind in [Distribution::Normal, Distribution::Pareto, Distribution::Paretonormal] {
            let shape = Shape::new(kind, &[]);
            let n = 200_000;
            let values = (0..n).map(|i| shape.at((f64::from(i) + 0.5) / f64::from(n)));
            let (sum, squares) = values.fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
            let mean = sum / f64::from(n);
            assert!(mean.abs() < 1e-3, "{kind:?} {mean}");
            assert!((squares / f64::from(n) - 1.0).abs() < 1e-2, "{kind:?}");
        }
    }

    #[test]
    fn pareto_reaches_less_than_its_stated_minimum() {
        let least = Shape::new(Distribution::Pareto, &[]).at(1e-16);
        assert!((-0.693..-0.69).contains(&least), "{least}");
    }
}
