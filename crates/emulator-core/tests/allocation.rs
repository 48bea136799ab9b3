//! In the steady state no packet allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use emulator_core::Link;
use emulator_core::config::Config;

struct Counting;

thread_local! {
    /// Of this thread alone: the one that waits for the test allocates, too.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_steady_state_does_not_allocate() {
    let delay = r#""delay_us": 4000, "jitter": {"jitter_us": 2000, "keep_order": false, "correlation": 0.25},
        "loss": {"kind": "independent", "probability": 0.01, "correlation": 0.25},
        "duplication": {"probability": 0.01}, "reordering": {"probability": 0.01, "gap": 3}"#;
    let rate = r#""rate": {"rate_bps": 1000000000, "queue_packets": 300, "codel": {}}"#;
    for direction in [
        format!(r#"{{"name": "d", "stages": {{{delay}, {rate}}}}}"#),
        format!(
            r#"{{"name": "d", "model": "netem", "stages": {{{}}}}}"#,
            delay.replace(r#""keep_order": false, "#, "")
        ),
    ] {
        let config: Config = serde_json::from_str(&format!(r#"{{"directions": [{direction}]}}"#)).unwrap();
        let mut link = Link::new(&config, 0).unwrap();
        let mut packets = |from: u64, to: u64| {
            for n in from..to {
                link.offer(n * 12_000, 1514, 1, n);
                while link.take(n * 12_000).is_some() {}
            }
        };
        packets(0, 100_000);
        let before = COUNT.get();
        packets(100_000, 1_100_000);
        assert_eq!(COUNT.get(), before);
    }
}
