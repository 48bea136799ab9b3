//! Takes quinn's version from `Cargo.lock`, for the programs to report: the library does not tell it.

use std::{env, fs, path::Path};

fn main() {
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let lock = Path::new(&here).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(&lock).expect("Cargo.lock can be read");
    for name in ["quinn", "quinn-proto", "rustls"] {
        let entry = format!("name = \"{name}\"\nversion = \"");
        let rest = text.split(&entry).nth(1).expect("Cargo.lock pins it");
        let version = rest.split('"').next().unwrap_or_default();
        println!("cargo::rustc-env=VERSION_OF_{}={version}", name.replace('-', "_").to_uppercase());
    }
}
