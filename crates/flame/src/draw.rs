//! Draws folded stacks: the kernel's frames orange, Go's green, Rust's and C++'s yellow, all others red.

use std::io;

use inferno::flamegraph::color::{MultiPalette, Palette};
use inferno::flamegraph::{self, Options};

use crate::args::Draw;

/// One SVG of all the files; the same function has the same colour in every graph.
pub fn draw(wanted: &Draw, svg: impl io::Write) -> io::Result<()> {
    let mut options = Options::default();
    options.title.clone_from(&wanted.title);
    options.subtitle = (!wanted.subtitle.is_empty()).then(|| wanted.subtitle.clone());
    // The palette that inferno has for Java tells the kernel's frames (`_[k]`) and languages apart by their names.
    options.colors = Palette::Multi(MultiPalette::Java);
    options.deterministic = true;
    options.min_width = 0.05;
    flamegraph::from_files(&mut options, &wanted.folded, svg)
}
