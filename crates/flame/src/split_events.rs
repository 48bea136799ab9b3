//! Splits the output of `perf script` by its events: each side of a trial has an event of its own, named after it.
//!
//! The event `core` is what was seen on every processor, whichever process ran. Of this only the kernel's work for a
//! side is kept, where no process of the side ran: network soft interrupts on a processor that only this side has, in
//! the idle task or in ksoftirqd. This work gets a root frame of its own, which distinguishes it.

use std::io::{self, BufRead};

use crate::args;
use crate::go_symbols::Programs;

const CORE: &str = "core";

/// The kernel's functions that carry out soft interrupts, by their names in Linux 4 to 6.
const SOFTIRQ: [&str; 2] = ["handle_softirqs", "__do_softirq"];

/// The stacks of one side.
#[derive(Debug)]
pub struct Side {
    pub name: String,
    /// As `perf script` prints them.
    pub script: String,
    /// How many there are.
    pub samples: u64,
    /// How many of them are soft interrupts outside of the side's processes.
    pub softirq: u64,
    processors: Vec<u32>,
}

/// All sides.
#[derive(Debug)]
pub struct Sides(Vec<Side>);

impl Sides {
    /// Reads all that `perf script` prints with the fields comm, pid, tid, cpu, time, event, ip, sym and dso.
    pub fn read(input: impl BufRead, sides: &[args::Side], programs: &mut Programs) -> io::Result<Self> {
        let mut found = Self(
            sides
                .iter()
                .map(|side| Side {
                    name: side.name.clone(),
                    script: String::new(),
                    samples: 0,
                    softirq: 0,
                    processors: side.processors.clone(),
                })
                .collect(),
        );
        let mut block: Vec<String> = Vec::new();
        for line in input.split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            if line.trim().is_empty() {
                found.take(&block, programs);
                block.clear();
            } else if !(block.is_empty() && line.starts_with('#')) {
                block.push(line);
            }
        }
        found.take(&block, programs);
        Ok(found)
    }

    /// The sides in the order in which they were asked for.
    pub fn all(&self) -> &[Side] {
        &self.0
    }

    fn take(&mut self, block: &[String], programs: &mut Programs) {
        let Some((head, stack)) = block.split_first() else { return };
        let Some(head) = Head::read(head) else { return };
        let side = if head.event == CORE {
            let Some(root) = head.softirq(stack) else { return };
            let Some(side) = self.0.iter_mut().find(|side| side.processors.contains(&head.processor)) else { return };
            side.softirq += 1;
            side.script += &format!("{root} 0 [{:03}] 0.0: {}:\n", head.processor, side.name);
            side
        } else {
            let Some(side) = self.0.iter_mut().find(|side| side.name == head.event) else { return };
            side.script += &format!("{} [{:03}] 0.0: {}:\n", head.task, head.processor, side.name);
            side
        };
        side.samples += 1;
        for (depth, line) in stack.iter().enumerate() {
            side.script += &programs.name(line, depth > 0);
            side.script.push('\n');
        }
        side.script.push('\n');
    }
}

/// The first line of a sample: `comm pid/tid [cpu] time: [period] event:`.
struct Head<'a> {
    /// The program's name with its process and thread.
    task: &'a str,
    processor: u32,
    event: &'a str,
}

impl<'a> Head<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let event = line.strip_suffix(':')?.rsplit(' ').next()?;
        let open = line.rfind(" [")?;
        let (processor, _) = line[open + 2..].split_once(']')?;
        Some(Self { task: line[..open].trim(), processor: processor.parse().ok()?, event })
    }

    /// The root frame of a sample of `core`, if it is a soft interrupt outside of any process.
    fn softirq(&self, stack: &[String]) -> Option<&'static str> {
        let root = if self.task.starts_with("swapper ") {
            "softirq_while_idle"
        } else if self.task.starts_with("ksoftirqd/") {
            "ksoftirqd"
        } else {
            return None;
        };
        let inside = |line: &String| SOFTIRQ.iter().any(|function| line.contains(function));
        stack.iter().any(inside).then_some(root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "# a comment
iperf3 10/11 [000]  1.5:    2004008   source: 
\tffffffff81000001 tcp_sendmsg ([kernel.kallsyms])
\t          401000 main (/usr/bin/iperf3)

V8 WorkerThread 12/13 [001]  1.6:   target: 
\t          401000 main (/usr/bin/iperf3)

swapper     0/0     [001]  1.7:    2004008     core: 
\tffffffff81000002 tcp_v4_rcv ([kernel.kallsyms])
\tffffffff81000003 handle_softirqs ([kernel.kallsyms])

swapper     0/0     [001]  1.8:    2004008     core: 
\tffffffff81000004 default_idle ([kernel.kallsyms])

ksoftirqd/0    15/15    [000]  1.9:    2004008     core: 
\tffffffff81000003 __do_softirq ([kernel.kallsyms])

iperf3 10/11 [000]  2.0:    2004008     core: 
\tffffffff81000003 handle_softirqs ([kernel.kallsyms])";

    fn read(sides: &str) -> Sides {
        let line = format!("fold --to x {sides}");
        let Ok(args::Args::Fold(wanted)) = args::read(line.split(' ').map(str::to_owned)) else { panic!() };
        Sides::read(SCRIPT.as_bytes(), &wanted.sides, &mut Programs::default()).unwrap()
    }

    #[test]
    fn each_event_is_a_side_and_soft_interrupts_go_to_whose_processor_it_is() {
        let found = read("--side source=0 --side target=1");
        let [source, target] = found.all() else { panic!() };
        assert_eq!((source.samples, source.softirq), (2, 1));
        assert_eq!((target.samples, target.softirq), (2, 1));
        assert!(source.script.contains("ksoftirqd 0 [000]") && source.script.contains("iperf3 10/11 [000]"));
        assert!(target.script.contains("V8 WorkerThread 12/13 [001]") && target.script.contains("tcp_v4_rcv"));
        assert!(!target.script.contains("default_idle"));
    }

    #[test]
    fn shared_processors_belong_to_nobody() {
        let found = read("--side source --side target");
        assert!(found.all().iter().all(|side| side.softirq == 0 && side.samples == 1));
    }
}
