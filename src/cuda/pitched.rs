//! Copies in rows, as the driver takes them.
#![forbid(unsafe_code)]

/// One side of a copy in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    /// Of the first byte.
    pub(crate) address: u64,
    /// Whether the address is one of the host.
    pub(crate) on_host: bool,
    /// Bytes from row to row.
    pub(crate) pitch: usize,
    /// Rows from plane to plane, those between planes included.
    pub(crate) rows: usize,
}

/// A copy of `depth` planes of `height` rows of `width` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pitched {
    pub(crate) source: Side,
    pub(crate) target: Side,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}
