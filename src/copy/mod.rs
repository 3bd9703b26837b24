//! Memory: the same values into another layout.
//!
//! `plan` decides (pure: which loops, which runs of bytes), `host` does. Types are never
//! converted.

mod plan;
mod host;

pub(crate) use host::copy;
