//! How results are printed: a JSON object a line, whole and at once.

use std::io::Write;

use serde::Serialize;

/// Prints `value` as one line of JSON; an error if standard output is gone.
pub fn line<T: Serialize>(value: &T) -> Result<(), String> {
    let mut text = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    text.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush()).map_err(|error| format!("standard output: {error}"))
}

#[derive(Serialize)]
struct Wrong<'a> {
    kind: &'static str,
    why: &'a str,
}

/// Passes on how something ended. If it failed, prints why, so that the reason is where the results are.
pub fn told(done: Result<(), String>) -> Result<(), String> {
    if let Err(why) = &done {
        line(&Wrong { kind: "error", why })?;
    }
    done
}
