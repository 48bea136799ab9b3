//! Takes the yardsticks: the time this machine needs for the few things of which the work of every VPN consists.
//!
//! Each is timed in slices of about a millisecond, and the median of the slices is its value. So a core that pauses
//! for a moment, or does other work, spoils some slices and not the result. Everything is in nanoseconds a piece; less
//! is better.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{Error, Result};

use ring::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
};
use serde::Serialize;

use crate::{packets, sys};

/// Nanoseconds of a slice: less than a scheduler gives a program before it lets another one go.
pub const SLICE: u64 = 1_000_000;
/// Slices of a yardstick at the least, however long they take.
const LEAST: usize = 15;
/// Bytes of a full packet inside of WireGuard on Ethernet.
pub const PACKET: usize = 1420;
/// Nanoseconds for which a timer sleeps: as long as a packet lies in a link of 0.2 ms.
const NAP: u64 = 200_000;
const MIB: usize = 1 << 20;
/// MiB of which each is copied in turn: more than the caches of a core hold.
const MUCH: usize = 32;

/// What one yardstick showed: nanoseconds a piece, the median of its slices and their quartiles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Length {
    value: f64,
    low: f64,
    high: f64,
}

/// What was measured, by name, and what could not be, with the reason.
#[derive(Default, Serialize)]
struct Report {
    lengths: BTreeMap<&'static str, Length>,
    absent: BTreeMap<&'static str, String>,
}

impl Report {
    fn note(&mut self, name: &'static str, found: Result<Length>) {
        match found {
            Ok(length) => drop(self.lengths.insert(name, length)),
            Err(why) => drop(self.absent.insert(name, why.to_string())),
        }
    }
}

/// Takes every yardstick for so many seconds and prints one object of JSON. `other` is a second core, or `core` again
/// where there is no second one.
pub fn measure(seconds: f64, core: usize, other: usize) -> Result<()> {
    sys::die_with_parent()?;
    sys::stay_on(core)?;
    sys::exact_timers()?;
    let long = (seconds * 1e9) as u64;
    let mut report = Report::default();
    report.note("system call", timed(long, |count| (0..count).try_for_each(|_| sys::parent())));
    report.note("wake-up, one core", woken(long, core, core));
    if other == core {
        report.absent.insert("wake-up, two cores", "there is one core".into());
    } else {
        report.note("wake-up, two cores", woken(long, core, other));
    }
    report.note("timer", timed(long, naps).map(|length| length.less(NAP as f64)));
    report.note("copy", copied(long));
    for (name, cipher) in
        [("AES-128-GCM", &AES_128_GCM), ("AES-256-GCM", &AES_256_GCM), ("ChaCha20-Poly1305", &CHACHA20_POLY1305)]
    {
        report.note(name, sealed(long, cipher));
    }
    match packets::tun(long) {
        Ok((read, write)) => {
            report.note("TUN read", Ok(read));
            report.note("TUN write", Ok(write));
        }
        Err(why) => {
            report.absent.insert("TUN read", why.to_string());
            report.absent.insert("TUN write", why.to_string());
        }
    }
    report.note("veth", packets::veth(long));
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

impl Length {
    /// From what each slice took, of which there is one at least, in nanoseconds a piece.
    pub fn of(mut slices: Vec<f64>) -> Self {
        slices.sort_unstable_by(f64::total_cmp);
        let last = slices.len() - 1;
        Self { value: slices[last / 2], low: slices[last / 4], high: slices[last - last / 4] }
    }

    fn less(self, all: f64) -> Self {
        Self { value: self.value - all, low: self.low - all, high: self.high - all }
    }

    fn halved(self) -> Self {
        Self { value: self.value / 2.0, low: self.low / 2.0, high: self.high / 2.0 }
    }
}

/// Times `work`, which does something so many times, in slices, for so many nanoseconds in all.
fn timed(long: u64, mut work: impl FnMut(u64) -> Result<()>) -> Result<Length> {
    let mut count = 1;
    while once(&mut work, count)? < SLICE / 2 {
        count *= 2;
    }
    slices(long, || Ok(once(&mut work, count)? as f64 / count as f64)).map(Length::of)
}

/// What each slice gives, for so many nanoseconds and `LEAST` times.
pub fn slices<T>(long: u64, mut slice: impl FnMut() -> Result<T>) -> Result<Vec<T>> {
    let (begun, mut found) = (sys::now(), vec![]);
    while sys::now() - begun < long || found.len() < LEAST {
        found.push(slice()?);
    }
    Ok(found)
}

fn once(work: &mut impl FnMut(u64) -> Result<()>, count: u64) -> Result<u64> {
    let begun = sys::now();
    work(count)?;
    Ok((sys::now() - begun).max(1))
}

fn naps(count: u64) -> Result<()> {
    for _ in 0..count {
        sys::sleep_until(sys::now() + NAP);
    }
    Ok(())
}

/// A byte goes through one pipe to a thread on `other` and back through a second one: two wake-ups.
fn woken(long: u64, core: usize, other: usize) -> Result<Length> {
    let ((ask_read, ask_write), (answer_read, answer_write)) = (std::io::pipe()?, std::io::pipe()?);
    let echo = std::thread::spawn(move || {
        sys::stay_on(other)?;
        let (mut asked, mut answered) = (ask_read, answer_write);
        std::io::copy(&mut Bytewise(&mut asked), &mut answered).map(drop)
    });
    let (mut ask, mut answer) = (ask_write, answer_read);
    sys::stay_on(core)?;
    let found = timed(long, |count| {
        let mut byte = [0];
        for _ in 0..count {
            std::io::Write::write_all(&mut ask, &byte)?;
            std::io::Read::read_exact(&mut answer, &mut byte)?;
        }
        Ok(())
    });
    drop(ask);
    echo.join().map_err(|_| Error::other("the thread that answers broke"))??;
    found.map(Length::halved)
}

/// Hands each byte on as soon as it is there.
struct Bytewise<'a, T>(&'a mut T);

impl<T: std::io::Read> std::io::Read for Bytewise<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.0.read(&mut buffer[..1])
    }
}

/// One MiB after the other, from memory to memory.
fn copied(long: u64) -> Result<Length> {
    let (from, mut to) = (vec![1_u8; MUCH * MIB], vec![0_u8; MUCH * MIB]);
    let mut at = 0;
    timed(long, |count| {
        for _ in 0..count {
            to[at..at + MIB].copy_from_slice(&from[at..at + MIB]);
            at = (at + MIB) % (MUCH * MIB);
        }
        black_box(&to);
        Ok(())
    })
}

/// A packet encrypted in place. The nonce is the same for all: nothing of this is ever sent.
fn sealed(long: u64, cipher: &'static Algorithm) -> Result<Length> {
    let broken = |_| Error::other("the cipher refused");
    let key = LessSafeKey::new(UnboundKey::new(cipher, &vec![7; cipher.key_len()]).map_err(broken)?);
    let mut packet = vec![0; PACKET];
    timed(long, |count| {
        for _ in 0..count {
            let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
            let _ = black_box(key.seal_in_place_separate_tag(nonce, Aad::empty(), &mut packet).map_err(broken)?);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_that_pauses_met_move_nothing() {
        let mut slices = vec![100.0; 21];
        (slices[2], slices[9], slices[20]) = (60_000.0, 5_000.0, 900.0);
        assert_eq!(Length::of(slices), Length { value: 100.0, low: 100.0, high: 100.0 });
        assert_eq!(Length::of(vec![3.0]), Length { value: 3.0, low: 3.0, high: 3.0 });
    }

    #[test]
    fn quartiles_are_those_of_the_sorted_slices() {
        let slices = (1..=17).rev().map(f64::from).collect();
        assert_eq!(Length::of(slices), Length { value: 9.0, low: 5.0, high: 13.0 });
    }

    #[test]
    fn there_are_slices_enough_however_short_the_time() {
        assert_eq!(slices(0, || Ok(())).unwrap().len(), LEAST);
    }

    #[test]
    fn a_hundred_times_as_much_takes_longer() {
        let work = |times: u64| {
            timed(200_000, move |count| {
                for each in 0..count * times {
                    black_box(each);
                }
                Ok(())
            })
        };
        let (one, hundred) = (work(1).unwrap(), work(100).unwrap());
        assert!(hundred.low > 2.0 * one.low, "{hundred:?} against {one:?}");
    }

    #[test]
    fn a_wake_up_is_half_of_a_round_trip_that_ends() {
        let core = sys::cores().unwrap()[0];
        assert!(woken(200_000, core, core).unwrap().low > 0.0);
    }

    #[test]
    fn every_cipher_seals_in_place() {
        for cipher in [&AES_128_GCM, &AES_256_GCM, &CHACHA20_POLY1305] {
            assert!(sealed(200_000, cipher).unwrap().value > 0.0);
        }
    }

    #[test]
    fn a_refusal_is_told_by_its_name() {
        let mut report = Report::default();
        report.note("veth", Err(Error::other("not permitted")));
        assert_eq!(serde_json::to_value(&report).unwrap()["absent"]["veth"], "not permitted");
    }
}
