//! Reads the command line.

use std::path::PathBuf;

/// What is asked for.
#[derive(Debug, PartialEq)]
pub enum Args {
    Fold(Fold),
    Draw(Draw),
}

/// Fold the output of `perf script` on standard input.
#[derive(Debug, PartialEq)]
pub struct Fold {
    /// What the names of its files begin with, folders included.
    pub prefix: String,
    pub sides: Vec<Side>,
}

/// A side: the name of its event, and the processors that only this side has.
#[derive(Debug, PartialEq, Clone)]
pub struct Side {
    pub name: String,
    pub processors: Vec<u32>,
}

/// Draw folded files into one SVG.
#[derive(Debug, PartialEq, Default)]
pub struct Draw {
    pub file: PathBuf,
    pub title: String,
    pub subtitle: String,
    pub folded: Vec<PathBuf>,
}

pub const USAGE: &str = "usage: tunnelmark-flame fold --to PREFIX --side NAME[=CPU,CPU...]... < PERF_SCRIPT
       tunnelmark-flame draw --to FILE [--title TEXT] [--subtitle TEXT] FOLDED...
see docs/stacks.md";

/// The command line without the program's name; what is wrong with it, in words.
pub fn read(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    match words.next().as_deref() {
        Some("fold") => fold(words),
        Some("draw") => draw(words),
        _ => Err("say `fold` or `draw`".into()),
    }
}

fn fold(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let (mut prefix, mut sides) = (None, Vec::new());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--to" => prefix = Some(value(&word, &mut words)?),
            "--side" => sides.push(side(&value(&word, &mut words)?)?),
            _ => return Err(format!("what is `{word}`?")),
        }
    }
    if sides.is_empty() {
        return Err("name a --side".into());
    }
    Ok(Args::Fold(Fold { prefix: prefix.ok_or("say with --to what the files' names begin with")?, sides }))
}

fn side(text: &str) -> Result<Side, String> {
    let (name, processors) = text.split_once('=').unwrap_or((text, ""));
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
        return Err(format!("a side's name has lower-case letters and dashes, not `{name}`"));
    }
    let processors = processors
        .split(',')
        .filter(|number| !number.is_empty())
        .map(|number| number.parse().map_err(|_| format!("`{number}` is not a processor's number")))
        .collect::<Result<_, _>>()?;
    Ok(Side { name: name.into(), processors })
}

fn draw(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut wanted = Draw::default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--to" => wanted.file = value(&word, &mut words)?.into(),
            "--title" => wanted.title = value(&word, &mut words)?,
            "--subtitle" => wanted.subtitle = value(&word, &mut words)?,
            _ if word.starts_with("--") => return Err(format!("what is `{word}`?")),
            _ => wanted.folded.push(word.into()),
        }
    }
    if wanted.file.as_os_str().is_empty() || wanted.folded.is_empty() {
        return Err("name the file to write with --to, and folded files".into());
    }
    Ok(Args::Draw(wanted))
}

fn value(name: &str, words: &mut impl Iterator<Item = String>) -> Result<String, String> {
    words.next().ok_or_else(|| format!("{name} needs a value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> impl Iterator<Item = String> + '_ {
        line.split(' ').map(str::to_owned)
    }

    #[test]
    fn sides_with_and_without_processors() {
        let read = read(words("fold --to x --side source=0,2 --side target"));
        let side = |name: &str, processors: &[u32]| Side { name: name.into(), processors: processors.to_vec() };
        let sides = vec![side("source", &[0, 2]), side("target", &[])];
        assert_eq!(read, Ok(Args::Fold(Fold { prefix: "x".into(), sides })));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, said) in [
            ("", "fold"),
            ("fold --side source", "--to"),
            ("fold --to x", "--side"),
            ("fold --to x --side ../y", "lower-case"),
            ("fold --to x --side a=b", "processor"),
            ("fold --to", "needs a value"),
            ("draw --to x", "folded"),
            ("draw --wide x", "--wide"),
        ] {
            let why = read(words(line)).expect_err(line);
            assert!(why.contains(said), "{line}: {why}");
        }
    }
}
