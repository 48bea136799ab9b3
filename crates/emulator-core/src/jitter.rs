//! Draws the variation of the delay.

use crate::bernoulli::Crandom;
use crate::config::{Jitter as Settings, Model};
use crate::distribution::{SCALE, Shape, latent_grid, netem_table};
use crate::philox::{Purpose, Source, open_unit};

/// What is added to the delay, packet by packet.
#[derive(Clone, Debug)]
pub(crate) enum Jitter {
    Stated(Stated),
    Netem(Netem),
}

/// A Gaussian copula: an autoregressive normal variable, mapped to the distribution by its quantiles. The
/// marginal distribution is exact, and the latent coefficient is chosen so that the *result* has the
/// correlation asked for.
#[derive(Clone, Debug)]
pub(crate) struct Stated {
    shape: Shape,
    size_ns: f64,
    latent: f64,
    before: Option<f64>,
}

/// netem's `tabledist`, less the mean delay.
#[derive(Clone, Debug)]
pub(crate) struct Netem {
    sigma: i64,
    table: Option<Box<[i16]>>,
    crandom: Crandom,
}

impl Jitter {
    pub(crate) fn new(settings: &Settings, model: Model, source: &Source) -> Self {
        match model {
            Model::Stated => {
                let shape = Shape::new(settings.distribution, &settings.table);
                let latent = latent_correlation(&shape, settings.correlation);
                Self::Stated(Stated { shape, size_ns: settings.jitter_us * 1000.0, latent, before: None })
            }
            Model::Netem => Self::Netem(Netem {
                sigma: (settings.jitter_us * 1000.0).round() as i64,
                table: netem_table(settings.distribution, &settings.table),
                crandom: Crandom::new(settings.correlation, source.start(Purpose::Jitter)),
            }),
        }
    }

    /// Nanoseconds to add to the delay.
    #[inline]
    pub(crate) fn next(&mut self, words: [u32; 4]) -> i64 {
        match self {
            Self::Stated(stated) => stated.next(words),
            Self::Netem(netem) => netem.next(words[0]),
        }
    }
}

impl Stated {
    #[inline]
    fn next(&mut self, words: [u32; 4]) -> i64 {
        let u = open_unit(words);
        let value = if self.latent == 0.0 {
            self.shape.at(u)
        } else {
            let fresh = crate::normal::quantile(u);
            let z = match self.before {
                None => fresh,
                Some(before) => self.latent * before + (1.0 - self.latent * self.latent).sqrt() * fresh,
            };
            self.before = Some(z);
            self.shape.at_latent(z)
        };
        (value * self.size_ns).round() as i64
    }
}

impl Netem {
    #[inline]
    fn next(&mut self, random: u32) -> i64 {
        if self.sigma == 0 {
            return 0;
        }
        let random = self.crandom.next(random);
        match &self.table {
            None => i64::from(random % (2 * self.sigma as u32)) - self.sigma,
            Some(table) => {
                let t = i64::from(table[random as usize % table.len()]);
                // Rounded half away from zero, in two parts as the kernel does to stay inside its words.
                let x = (self.sigma % SCALE) * t;
                let x = if x >= 0 { x + SCALE / 2 } else { x - SCALE / 2 };
                x / SCALE + (self.sigma / SCALE) * t
            }
        }
    }
}

/// The correlation of the latent normal variables that gives their images under `shape` the correlation `asked`.
///
/// With g(z) = sum a_k He_k(z) in normalised Hermite polynomials, images of variables with correlation r have
/// the covariance sum a_k^2 r^k (Mehler's formula), which rises with r: bisection finds it.
fn latent_correlation(shape: &Shape, asked: f64) -> f64 {
    const ORDER: usize = 48;
    if asked == 0.0 {
        return 0.0;
    }
    let mut a = [0.0; ORDER + 1];
    let (mut mean, mut square) = (0.0, 0.0);
    for (weight, z) in latent_grid() {
        let value = shape.at_latent(z);
        mean += weight * value;
        square += weight * value * value;
        let (mut before, mut here) = (0.0, 1.0);
        for (k, sum) in a.iter_mut().enumerate() {
            *sum += weight * value * here;
            let k = k as f64;
            (before, here) = (here, (z * here - k.sqrt() * before) / (k + 1.0).sqrt());
        }
    }
    let variance = square - mean * mean;
    let found: f64 = a[1..].iter().map(|a| a * a).sum();
    // What the cut series leaves out belongs to higher orders; counted at the first of them.
    let rest = (variance - found).max(0.0);
    let correlation = |r: f64| {
        let mut power = 1.0;
        let mut sum = 0.0;
        for a in &a[1..] {
            power *= r;
            sum += a * a * power;
        }
        (sum + rest * power * r) / variance
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if correlation(middle) < asked { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Distribution;

    #[test]
    fn for_the_uniform_distribution_the_latent_correlation_is_known() {
        let shape = Shape::new(Distribution::Uniform, &[]);
        for asked in [0.1, 0.25, 0.5, 0.9] {
            // Spearman's rho of a bivariate normal: 6/pi asin(r/2).
            let exact = 2.0 * (std::f64::consts::PI * asked / 6.0).sin();
            assert!((latent_correlation(&shape, asked) - exact).abs() < 1e-4);
        }
    }

    #[test]
    fn for_the_normal_distribution_it_is_the_correlation_asked_for() {
        let shape = Shape::new(Distribution::Normal, &[]);
        assert!((latent_correlation(&shape, 0.25) - 0.25).abs() < 1e-6);
    }
}
