//! The one error type of the crate, below every other file of the road.
//!
//! A message has the shape `<what>: expected <x>, got <y>; <way out>`, lower case and without a
//! full stop. The variant says which *kind* of failure it is, which is all that a caller can act
//! on; the Python skin turns each kind into one exception class.

#[cfg(feature = "python")]
mod python;

#[cfg(feature = "python")]
pub(crate) use python::{DeviceUnavailable, Failure};

/// What went wrong, by kind. The text names what was expected, what came, and a way out.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An argument that cannot be right, whatever the memory holds (Python: `ValueError`).
    #[error("{0}")]
    Argument(String),
    /// A buffer whose content cannot be used or expressed as asked: a descriptor that lies,
    /// read-only memory where writable is needed, a device out of reach (Python: `BufferError`).
    #[error("{0}")]
    Buffer(String),
    /// An object of a wrong type, or one that speaks none of the protocols (Python: `TypeError`).
    #[error("{0}")]
    Type(String),
    /// An index outside what it indexes (Python: `IndexError`).
    #[error("{0}")]
    Index(String),
    /// The allocator has no more memory (Python: `MemoryError`).
    #[error(
        "out of memory: expected {0} bytes from the system, got none; allocate fewer or smaller storages"
    )]
    OutOfMemory(usize),
    /// No usable device of the kind asked for (Python: `DeviceUnavailable`).
    #[error("{0}")]
    Device(String),
}

/// Result with the crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The same error with `prefix: ` in front, to name the argument it is about.
    #[must_use]
    pub fn about(self, prefix: &str) -> Self {
        self.with_text(|text| format!("{prefix}: {text}"))
    }

    /// The same error with more text behind it.
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
            Self::OutOfMemory(bytes) => Self::OutOfMemory(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_keeps_the_kind_of_the_error() {
        let error = Error::Buffer("too short".into()).about("argument 'a'");
        assert_eq!(error, Error::Buffer("argument 'a': too short".into()));
    }
}
