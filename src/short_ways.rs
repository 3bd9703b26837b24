//! The switch of the short ways: code that does for a usual case what other code does for all, with
//! the same result and sooner. docs/design.md lists them. Tests turn them off.

use std::sync::LazyLock;

/// True unless the environment has `DLFIELD_SHORT_WAYS=0`, which is read once.
#[inline]
pub(crate) fn short_ways() -> bool {
    static ON: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("DLFIELD_SHORT_WAYS").is_none_or(|value| value != "0"));
    *ON
}
