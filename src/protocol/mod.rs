//! Doors: one file for each protocol, with `import` and `export`.
//!
//! `import(obj, request)` answers `Ok(None)` where the object does not speak the protocol, and `Err` where
//! it does and failed; a producer's own exception passes unchanged. This file alone knows the
//! order in which doors are tried.

#[cfg(feature = "python")]
pub(crate) mod keep;
pub(crate) mod dlpack;
#[cfg(feature = "python")]
mod producer;
#[cfg(feature = "python")]
pub(crate) mod buffer;
#[cfg(feature = "python")]
pub(crate) mod array_interface;
#[cfg(feature = "python")]
pub(crate) mod gt4py;
#[cfg(feature = "python")]
mod xarray;
#[cfg(feature = "python")]
mod arrival;

#[cfg(feature = "python")]
pub(crate) use arrival::{Arrival, arrive};

/// What is known of an object before a door is tried.
#[cfg(feature = "python")]
#[derive(Debug, Clone, Copy)]
struct ImportRequest {
    /// The producer's arrays never change: there is no point in asking for writable memory.
    immutable: bool,
}
