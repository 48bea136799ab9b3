//! Questions and answers between the two ends over UDP: each question is repeated until its answer comes.
//!
//! Whatever is asked may be asked twice with the same effect as once, so a lost answer does no harm. There is no
//! connection that loss could make hang: after `PATIENCE` without an answer the asker gives up and says so.

use std::net::UdpSocket;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::{self, MILLISECOND, SECOND};
use crate::receive_stats::Count;

/// The first four bytes of a control datagram.
const MAGIC: [u8; 4] = *b"TMct";

/// How long an answer is waited for before the question is repeated; doubled each time up to a second.
const FIRST_WAIT: u64 = 100 * MILLISECOND;

/// How long a question is repeated in all, some 14 times.
const PATIENCE: u64 = 12 * SECOND;

/// The most copies of a question that are sent at once. Each try sends one copy more than the one before. Where a path
/// loses packets in bursts that are counted in packets, only packets end a burst, and single ones would be 14 in a row.
const COPIES: u32 = 8;

/// What the client may ask of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// Is the server there, and on the same clock?
    Hello,
    /// A trial begins: forget the one before. `datagrams` is zero if their number is not known before.
    Begin {
        /// Its number, in the header of each of its datagrams.
        trial: u32,
        /// How many there will be.
        datagrams: u64,
    },
    /// What has arrived of that trial?
    Count {
        /// Its number.
        trial: u32,
    },
    /// Send probes to me, and note those that I send.
    Probe(ProbePlan),
    /// How many of my probes have arrived in that run?
    Progress {
        /// The number of the run.
        run: u32,
    },
    /// That run is over: print the delays of my probes.
    Finish {
        /// The number of the run.
        run: u32,
    },
}

/// Probes each way on a schedule; times are of the common clock, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbePlan {
    /// The number of the run.
    pub run: u32,
    /// Per cent of the capacity that other traffic takes meanwhile; it is printed with the delays.
    pub load: f64,
    /// Payloads in bytes; probe k has the size k modulo their number.
    pub sizes: Vec<usize>,
    /// Probes each way.
    pub probes: u64,
    /// Between two probes of a way.
    pub interval: u64,
    /// When the first forward probe is to leave.
    pub forward: u64,
    /// When the first probe back is to leave.
    pub back: u64,
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// To `Hello`: by which clock it measures.
    Clock(String),
    /// To `Begin`, `Probe` and `Finish`: done.
    Done,
    /// To `Count`.
    Count(Count),
    /// To `Progress`: forward probes that arrived, nanoseconds since the last did, and the longest delay.
    Progress {
        /// Forward probes that arrived.
        arrived: u64,
        /// Nanoseconds since the last did.
        quiet: u64,
    },
    /// The question does not fit what the server knows.
    No(String),
}

/// A question or an answer with the number that joins them.
#[derive(Serialize, Deserialize)]
struct Numbered<T> {
    id: u64,
    body: T,
}

/// The clock of this machine by name: equal names are one clock.
///
/// CLOCK_MONOTONIC counts from a kernel's boot, shifted by the offset of a time namespace. Where a lab has nodes on several
/// hosts, it shifts them so that all show the same, and says so by TUNNELMARK_CLOCK.
pub fn clock_name() -> String {
    if let Ok(name) = std::env::var("TUNNELMARK_CLOCK") {
        return name;
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let shift = offsets.lines().find(|line| line.starts_with("monotonic")).unwrap_or_default();
    format!("{} {}", boot.trim(), shift.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The question in a datagram with its number, if it is one.
pub fn question(datagram: &[u8]) -> Option<(u64, Question)> {
    read(datagram)
}

/// The datagram of an answer to the question of that number.
pub fn answer(id: u64, body: Answer) -> Vec<u8> {
    written(id, &body)
}

fn written<T: Serialize>(id: u64, body: &T) -> Vec<u8> {
    let mut datagram = MAGIC.to_vec();
    serde_json::to_writer(&mut datagram, &Numbered { id, body }).expect("plain data has a JSON form");
    datagram
}

fn read<T: for<'a> Deserialize<'a>>(datagram: &[u8]) -> Option<(u64, T)> {
    let text = datagram.strip_prefix(&MAGIC)?;
    let numbered: Numbered<T> = serde_json::from_slice(text).ok()?;
    Some((numbered.id, numbered.body))
}

/// The client's end: asks over a socket that is connected to the server.
pub struct Asker {
    socket: UdpSocket,
    next: u64,
    /// Nanoseconds that the last question and its answer took.
    pub round_trip: u64,
    /// Bytes of all answers that arrived, late and repeated ones too.
    pub answers: u64,
}

impl Asker {
    /// Over that socket; nothing else may read from it while a question is asked.
    pub fn new(socket: UdpSocket) -> Asker {
        Asker { socket, next: clock::now(), round_trip: 0, answers: 0 }
    }

    /// Asks until there is an answer; an error names the question that got none.
    pub fn ask(&mut self, question: &Question) -> Result<Answer, String> {
        self.next += 1;
        let datagram = written(self.next, question);
        let (begin, mut wait, mut copies, mut room) = (clock::now(), FIRST_WAIT, 1, [0; 2048]);
        while clock::now() - begin < PATIENCE {
            let asked = clock::now();
            for _ in 0..copies {
                let _ = self.socket.send(&datagram); // what cannot be sent is like what is lost
            }
            copies = (copies + 1).min(COPIES);
            while let left @ 1.. = (asked + wait).saturating_sub(clock::now()) {
                let timeout = Duration::from_nanos(left.max(MILLISECOND));
                self.socket.set_read_timeout(Some(timeout)).map_err(|error| format!("a socket's timeout: {error}"))?;
                match self.socket.recv(&mut room) {
                    Ok(length) => {
                        let Some((id, body)) = read::<Answer>(&room[..length]) else { continue }; // a probe
                        self.answers += length as u64;
                        match body {
                            _ if id != self.next => {} // to an earlier try
                            Answer::No(why) => return Err(format!("the server: {why}")),
                            body => {
                                self.round_trip = clock::now() - asked;
                                return Ok(body);
                            }
                        }
                    }
                    // Refused by ICMP: at once, so without this pause the tries would be over in a moment.
                    Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                        clock::sleep_until(clock::now() + MILLISECOND);
                    }
                    Err(_) => {}
                }
            }
            wait = (2 * wait).min(SECOND);
        }
        let what = format!("{question:?}");
        let what = what.split([' ', '(']).next().unwrap_or_default();
        Err(format!("no answer from the server to {what} within {} s", PATIENCE / SECOND))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use std::thread;

    #[test]
    fn a_burst_of_losses_is_left_behind_by_more_packets() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(deaf(25)).unwrap(); // single tries would take longer than there is patience
        assert_eq!(Asker::new(socket).ask(&Question::Count { trial: 3 }), Ok(Answer::Done));
    }

    /// Answers on a socket, but only every `nth` time it is asked.
    fn deaf(nth: usize) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        thread::spawn(move || {
            let mut room = [0; 2048];
            for asked in 1.. {
                let (length, from) = socket.recv_from(&mut room).unwrap();
                let (id, body) = question(&room[..length]).unwrap();
                assert_eq!(body, Question::Count { trial: 3 });
                if asked % nth == 0 {
                    socket.send_to(&answer(id - 1, Answer::No("stale".into())), from).unwrap();
                    socket.send_to(&answer(id, Answer::Done), from).unwrap();
                }
            }
        });
        address
    }

    #[test]
    fn a_question_survives_loss_and_answers_to_others() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(deaf(3)).unwrap();
        let mut asker = Asker::new(socket);
        assert_eq!(asker.ask(&Question::Count { trial: 3 }), Ok(Answer::Done));
        assert_eq!(asker.ask(&Question::Count { trial: 3 }), Ok(Answer::Done));
    }

    #[test]
    fn a_stray_datagram_is_no_question() {
        assert!(question(b"").is_none());
        assert!(question(b"TMct").is_none());
        assert!(question(b"TMct{\"id\":1,\"body\":\"Dance\"}").is_none());
        assert!(question(b"GET / HTTP/1.1").is_none());
    }
}
