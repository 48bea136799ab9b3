//! Names of functions of Go programs that were stripped of their symbols.
//!
//! A Go program carries a table of its functions, `pclntab`, for its own stack traces. Stripping does not remove it.
//! Its layout since Go 1.18 is in Go's source, `runtime/symtab.go` (`pcHeader`, `functab`, `_func`). Functions of older
//! programs are left unnamed.

use std::collections::HashMap;
use std::fs;

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment};

/// First word of the table: since Go 1.20, and before.
const MAGIC: [u32; 2] = [0xffff_fff1, 0xffff_fff0];

/// The programs that were seen so far; None: not a Go program, or not readable.
#[derive(Debug, Default)]
pub struct Programs(HashMap<String, Option<Functions>>);

impl Programs {
    /// A stack line of `perf script` (`ip symbol (file)`), with a name if it had none and its file knows one.
    ///
    /// In a caller's frame the address is that to which the callee returns, which may be past the function's end.
    pub fn name(&mut self, line: &str, caller: bool) -> String {
        self.named(line, caller).unwrap_or_else(|| line.to_owned())
    }

    fn named(&mut self, line: &str, caller: bool) -> Option<String> {
        let (address, rest) = line.trim_start().split_once(' ')?;
        let path = rest.strip_prefix("[unknown] (")?.strip_suffix(')')?;
        if !path.starts_with('/') {
            return None;
        }
        let offset = u64::from_str_radix(address, 16).ok()?.checked_sub(u64::from(caller))?;
        let functions = self.0.entry(path.to_owned()).or_insert_with(|| Functions::of(path)).as_ref()?;
        Some(format!("\t{address} {} ({path})", functions.at(offset)?))
    }
}

/// The functions of one program.
#[derive(Debug)]
struct Functions {
    /// Where each begins in memory, in order, with its name; the last has none and is the end.
    begins: Vec<(u64, String)>,
    /// (offset in the file, bytes, address in memory): perf gives offsets in the file where it knows no symbol.
    segments: Vec<(u64, u64, u64)>,
}

impl Functions {
    fn of(path: &str) -> Option<Self> {
        let data = fs::read(path).ok()?;
        let file: ElfFile64<'_> = ElfFile64::parse(&*data).ok()?;
        let section = file.sections().find(|section| section.name().is_ok_and(|name| name.ends_with(".gopclntab")))?;
        let text = file.section_by_name(".text")?.address();
        let begins = table(section.data().ok()?, text)?;
        let segments = file
            .segments()
            .map(|segment| {
                let (offset, bytes) = segment.file_range();
                (offset, bytes, segment.address())
            })
            .collect();
        Some(Self { begins, segments })
    }

    fn at(&self, offset: u64) -> Option<&str> {
        let inside = |&&(from, bytes, _): &&(u64, u64, u64)| offset >= from && offset - from < bytes;
        let &(from, _, address) = self.segments.iter().find(inside)?;
        let address = offset - from + address;
        let after = self.begins.partition_point(|(begin, _)| *begin <= address);
        let (_, name) = &self.begins[after.checked_sub(1)?];
        (after < self.begins.len() && !name.is_empty()).then_some(name)
    }
}

/// The functions of a table; `text` is where the code begins, for tables that do not say so themselves (from Go 1.26).
fn table(data: &[u8], text: u64) -> Option<Vec<(u64, String)>> {
    let word = |at: usize| Some(u32::from_le_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(data.get(at..at.checked_add(8)?)?.try_into().ok()?));
    if !MAGIC.contains(&word(0)?) || *data.get(7)? != 8 {
        return None;
    }
    let functions = usize::try_from(long(8)?).ok()?;
    let text = match long(24)? {
        0 => text,
        own => own,
    };
    let names = usize::try_from(long(32)?).ok()?;
    let entries = usize::try_from(long(64)?).ok()?;
    let mut found = Vec::new();
    for number in 0..functions {
        let entry = entries.checked_add(number.checked_mul(8)?)?;
        let record = entries.checked_add(word(entry + 4)? as usize)?;
        let from = names.checked_add(word(record.checked_add(4)?)? as usize)?;
        let name = data.get(from..)?.split(|byte| *byte == 0).next()?;
        found.push((text + u64::from(word(entry)?), String::from_utf8_lossy(name).into_owned()));
    }
    found.push((text + u64::from(word(entries + functions * 8)?), String::new()));
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with two functions, at 0x10 and 0x20 of the code, which ends at 0x30.
    fn small(text: u64) -> Vec<u8> {
        let names = b"main.main\0net.(*Conn).Read\0";
        let mut data = [0xffff_fff1_u32.to_le_bytes(), [0, 0, 1, 8]].concat();
        let (at_names, at_entries) = (72_u64, 72 + names.len() as u64);
        for long in [2, 0, text, at_names, 0, 0, 0, at_entries] {
            data.extend(long.to_le_bytes());
        }
        data.extend(names);
        let records = 2 * 8 + 4; // behind the entries
        for word in [0x10, records, 0x20, records + 8, 0x30, 0x10, 0, 0x20, 10_u32] {
            data.extend(word.to_le_bytes());
        }
        data
    }

    #[test]
    fn functions_with_their_places() {
        let wanted = vec![(0x410, "main.main".into()), (0x420, "net.(*Conn).Read".into()), (0x430, String::new())];
        assert_eq!(table(&small(0x400), 7), Some(wanted.clone()));
        assert_eq!(table(&small(0), 0x400), Some(wanted), "where the table does not say where the code begins");
    }

    #[test]
    fn an_address_has_the_function_around_it() {
        let begins = table(&small(0x400), 0).unwrap();
        let functions = Functions { begins, segments: vec![(0, 0x1000, 0)] };
        assert_eq!(functions.at(0x410), Some("main.main"));
        assert_eq!(functions.at(0x42f), Some("net.(*Conn).Read"));
        assert_eq!((functions.at(0x40f), functions.at(0x430), functions.at(0x2000)), (None, None, None));
    }

    #[test]
    fn no_damage_is_a_panic() {
        let good = small(0x400);
        for end in 0..good.len() {
            table(&good[..end], 0);
        }
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] = 0xff;
            table(&bad, 0);
        }
    }

    #[test]
    fn lines_without_a_go_program_stay() {
        let mut programs = Programs::default();
        for line in ["\t 408e [unknown] (/nonexistent/program)", "\t 1 main (/bin/x)", "\t 1 [unknown] ([vdso])", "odd"]
        {
            assert_eq!(programs.name(line, true), line);
        }
    }
}
