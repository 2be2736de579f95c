//! Waiting for what the kernel does a little later.

use plimsoll_core::Nanos;
use plimsoll_system::clock;

/// Longest wait for what takes milliseconds: a busy machine has other things to do.
const LONGEST: Nanos = Nanos::from_secs(60);
/// Time between two looks.
const LOOK: Nanos = Nanos::from_millis(2);

/// Returns `true` as soon as a condition holds, and `false` if it does not within a minute.
pub fn eventually(holds: impl Fn() -> bool) -> bool {
    let until = clock::monotonic() + LONGEST;
    loop {
        if holds() {
            return true;
        }
        if clock::monotonic() >= until {
            return false;
        }
        wait_to_look_again();
    }
}

/// Waits for a moment in a loop that looks at something. One that only yields takes a processor from those
/// that it waits for.
pub fn wait_to_look_again() {
    clock::sleep_until(clock::monotonic() + LOOK);
}
