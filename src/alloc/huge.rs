//! Switch for huge pages in large fields: touching 40 MB for the first time is about ten times
//! faster in pages of 2 MiB than of 4 KiB.
#![forbid(unsafe_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// Environment variable that turns huge pages off.
pub(crate) const VARIABLE: &str = "DLFIELD_HUGE_PAGES";

const OFF: u8 = 1;
const ON: u8 = 2;

/// Argument of [`set_huge_pages`]; 0 before the first call.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// True if large fields request huge pages. The last [`set_huge_pages`] decides. Without one, they
/// do unless the environment variable `DLFIELD_HUGE_PAGES` is 0, off, no or false. Pages are small if
/// the system has no huge ones.
#[must_use]
pub fn huge_pages() -> bool {
    static DEFAULT: OnceLock<bool> = OnceLock::new();
    match CHOSEN.load(Ordering::Relaxed) {
        0 => *DEFAULT.get_or_init(|| {
            std::env::var(VARIABLE).ok().and_then(|text| read(&text)).unwrap_or(true)
        }),
        chosen => chosen == ON,
    }
}

/// Turns huge pages on or off for all later allocations of the process.
pub fn set_huge_pages(wanted: bool) {
    CHOSEN.store(if wanted { ON } else { OFF }, Ordering::Relaxed);
}

/// Parses yes or no, as environment variables spell it.
pub(crate) fn read(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "0" | "off" | "no" | "false" => Some(false),
        "1" | "on" | "yes" | "true" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn the_environment_may_hold_yes_no_or_nonsense() {
        assert_eq!((read("0"), read(" Off "), read("1")), (Some(false), Some(false), Some(true)));
        assert_eq!(read("huge"), None);
    }
}
