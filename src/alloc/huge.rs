//! Whether large fields ask for huge pages: touching 40 MB for the first time is about ten times faster in
//! pages of 2 MiB than of 4 KiB.
#![forbid(unsafe_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// Turns huge pages off before the program starts.
pub(crate) const VARIABLE: &str = "DLFIELD_HUGE_PAGES";

const OFF: u8 = 1;
const ON: u8 = 2;

/// What [`set_huge_pages`] was given; 0 before.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// Whether large fields ask for huge pages: what [`set_huge_pages`] said, else not where the environment's
/// `DLFIELD_HUGE_PAGES` is 0, off, no or false, else yes. Where the system has none to give, pages are small.
#[must_use]
pub fn huge_pages() -> bool {
    static AT_FIRST: OnceLock<bool> = OnceLock::new();
    match CHOSEN.load(Ordering::Relaxed) {
        0 => *AT_FIRST.get_or_init(|| {
            std::env::var(VARIABLE).ok().and_then(|text| read(&text)).unwrap_or(true)
        }),
        chosen => chosen == ON,
    }
}

/// Sets whether fields that are allocated from now on ask for huge pages, in the whole process.
pub fn set_huge_pages(wanted: bool) {
    CHOSEN.store(if wanted { ON } else { OFF }, Ordering::Relaxed);
}

/// A yes or no, as environments spell it.
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
    fn an_environment_may_say_yes_no_or_nonsense() {
        assert_eq!((read("0"), read(" Off "), read("1")), (Some(false), Some(false), Some(true)));
        assert_eq!(read("huge"), None);
    }
}
