//! Errors by kind, and the quoting of foreign text for their messages.
//!
//! A message has the form `<what>: expected <x>, got <y>; <way out>`, in lower case and without a
//! full stop. The variant names the *kind* of failure, which is all that a caller can act on. The
//! table of Python exceptions is in `python`.

use std::borrow::Cow;

/// A failure, by kind. The text names the expected and the actual value, and a way out.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An argument that is wrong regardless of the memory (Python: `ValueError`).
    #[error("{0}")]
    Argument(String),
    /// A buffer that cannot be used or expressed as requested: its descriptor is inconsistent, it
    /// is read-only, or its device is out of reach (Python: `BufferError`).
    #[error("{0}")]
    Buffer(String),
    /// An object of a wrong type, or one that speaks no protocol (Python: `TypeError`).
    #[error("{0}")]
    Type(String),
    /// An index out of bounds (Python: `IndexError`).
    #[error("{0}")]
    Index(String),
    /// The allocator has no more memory (Python: `MemoryError`).
    #[error(
        "out of memory: expected {0} bytes from the system, got none; allocate fewer or smaller \
         storages"
    )]
    OutOfMemory(usize),
    /// No usable device of the requested kind (Python: `DeviceUnavailable`).
    #[error("{0}")]
    Device(String),
    /// A storage without a buffer on the requested side (Python: `GTNoSuchBufferError`).
    #[error("{0}")]
    NoBuffer(String),
}

/// Result with the crate's [`Error`], unless another error is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Prepends `prefix: `, which names the argument or function that the error is about.
    /// [`Error::OutOfMemory`] has no text of its own, and stays as it is.
    #[must_use]
    pub fn about(self, prefix: &str) -> Self {
        self.with_text(|text| format!("{prefix}: {text}"))
    }

    /// Appends text.
    #[must_use]
    pub fn followed_by(self, more: &str) -> Self {
        self.with_text(|text| text + more)
    }

    fn with_text(self, put: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Argument(text) => Self::Argument(put(text)),
            Self::Buffer(text) => Self::Buffer(put(text)),
            Self::Type(text) => Self::Type(put(text)),
            Self::Index(text) => Self::Index(put(text)),
            Self::Device(text) => Self::Device(put(text)),
            Self::NoBuffer(text) => Self::NoBuffer(put(text)),
            Self::OutOfMemory(bytes) => Self::OutOfMemory(bytes),
        }
    }
}

/// The longest foreign text in a message, in characters.
const LONGEST: usize = 120;

/// Shortens foreign text for a message.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST) {
        None => text.into(),
        Some((end, _)) => {
            let (start, rest) = text.split_at(end);
            format!("{start}... and {} more characters", rest.chars().count()).into()
        }
    }
}

/// Quotes foreign text for a message, shortened and with escapes for what is not printable.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", escaped(&shortened(text)))
}

/// The longest name in a message, in characters.
const LONGEST_NAME: usize = 40;

/// Prepares a name for a message: cuts a long one, and escapes what is not printable.
pub(crate) fn shown_name(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(LONGEST_NAME) {
        None => escaped(name),
        Some((end, _)) => format!("{}...", escaped(name.split_at(end).0)).into(),
    }
}

/// Quotes a name for a message as Python's `repr` does, cut if it is long.
pub(crate) fn quoted_name(name: &str) -> String {
    let shown = shown_name(name);
    if shown.contains('\'') && !shown.contains('"') {
        return format!("\"{shown}\"");
    }
    format!("'{}'", shown.replace('\'', "\\'"))
}

/// Escapes backslashes and what is not printable, as Python's `repr` does: control characters,
/// marks of direction, and all spaces but the usual one.
fn escaped(text: &str) -> Cow<'_, str> {
    let printable = |one: char| matches!(one, ' '..='~') || one.escape_debug().count() == 1;
    if text.chars().all(|one| printable(one) && one != '\\') {
        return text.into();
    }
    let escape = |one: char| match (one, u32::from(one)) {
        ('\\', _) => "\\\\".to_owned(),
        ('\n' | '\r' | '\t', _) => one.escape_default().to_string(),
        _ if printable(one) || one.is_alphanumeric() => String::from(one),
        (_, code @ ..=0xff) => format!("\\x{code:02x}"),
        (_, code @ ..=0xffff) => format!("\\u{code:04x}"),
        (_, code) => format!("\\U{code:08x}"),
    };
    text.chars().map(escape).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_quoted_on_one_line_and_as_it_is() {
        assert_eq!(quoted("{\"shape\": [3]}\n"), "'{\"shape\": [3]}\\n'");
    }

    #[test]
    fn a_name_is_quoted_as_by_python_and_cut() {
        for (name, shown) in [
            ("K", "'K'"),
            ("höhe", "'höhe'"),
            ("a'b", "\"a'b\""),
            ("a'\"b", "'a\\'\"b'"),
            ("a\nb\u{1b}", "'a\\nb\\x1b'"),
            ("\u{202e}a\\", "'\\u202ea\\\\'"),
        ] {
            assert_eq!(quoted_name(name), shown);
        }
        assert_eq!(quoted_name(&"x".repeat(100_000)), format!("'{}...'", "x".repeat(40)));
    }

    #[test]
    fn a_prefix_keeps_the_kind_of_the_error() {
        let error = Error::Buffer("too short".into()).about("argument 'a'");
        assert_eq!(error, Error::Buffer("argument 'a': too short".into()));
    }
}
