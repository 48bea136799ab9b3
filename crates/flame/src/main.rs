//! `tunnelmark-flame`: folds the stacks that `perf script` prints, one file a side, and draws folded stacks as a flame
//! graph. `docs/stacks.md` is its contract.
//!
//! ```text
//! fold:  perf script ──sides (split by event)──> golang (names of stripped Go programs) ──inferno──> PREFIX.SIDE.folded
//! draw:  folded files of several trials ──inferno──> one SVG
//! ```

mod args;
mod draw;
mod go_symbols;
mod split_events;

use std::fs;
use std::io::{self, BufReader, Write};
use std::path::Path;
use std::process::ExitCode;

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};

use args::{Args, Draw, Fold, USAGE};
use go_symbols::Programs;
use split_events::Sides;

fn main() -> ExitCode {
    let done = match args::read(std::env::args().skip(1)) {
        Ok(Args::Fold(wanted)) => fold(&wanted),
        Ok(Args::Draw(wanted)) => draw(&wanted),
        Err(why) => {
            eprintln!("tunnelmark-flame: {why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("tunnelmark-flame: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Standard input to `PREFIX.SIDE.folded`; one line of JSON says how many samples each side has.
fn fold(wanted: &Fold) -> io::Result<()> {
    let mut programs = Programs::default();
    let sides = Sides::read(BufReader::new(io::stdin().lock()), &wanted.sides, &mut programs)?;
    let mut said = Vec::new();
    for side in sides.all() {
        let mut folded = Vec::new();
        let mut options = Options::default();
        options.annotate_kernel = true;
        Folder::from(options).collapse(side.script.as_bytes(), &mut folded)?;
        whole(Path::new(&format!("{}.{}.folded", wanted.prefix, side.name)), &folded)?;
        said.push(format!("\"{}\":{{\"samples\":{},\"softirq\":{}}}", side.name, side.samples, side.softirq));
    }
    writeln!(io::stdout(), "{{{}}}", said.join(","))
}

/// Folded files to one SVG.
fn draw(wanted: &Draw) -> io::Result<()> {
    let mut svg = Vec::new();
    draw::draw(wanted, &mut svg)?;
    whole(&wanted.file, &svg)
}

/// Writes a file so that a reader never sees half of it.
fn whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    fs::write(&part, content)?;
    fs::rename(&part, path)
}
