//! Doors: one file for each protocol, with `import` and `export`.
//!
//! `import(obj, request)` answers `Ok(None)` where the object does not speak the protocol, and `Err` where
//! it does and failed; a producer's own exception passes unchanged. This file alone knows the
//! order in which doors are tried.

#[cfg(feature = "python")]
pub(crate) mod keep;
#[cfg(feature = "python")]
mod capsule;
pub(crate) mod dlpack;
#[cfg(feature = "python")]
mod producer;
#[cfg(feature = "python")]
pub(crate) mod buffer;
#[cfg(feature = "python")]
pub(crate) mod array_interface;
#[cfg(feature = "python")]
pub(crate) mod cuda_array_interface;
#[cfg(feature = "python")]
pub(crate) mod gt4py;
#[cfg(feature = "arrow")]
pub(crate) mod arrow;
#[cfg(feature = "ndarray")]
pub(crate) mod ndarray;
#[cfg(feature = "python")]
mod xarray;
#[cfg(feature = "python")]
mod probe;
#[cfg(feature = "python")]
mod arrival;

#[cfg(feature = "python")]
pub(crate) use arrival::{Arrival, Wish, arrive, arrive_as, arrive_plain};
#[cfg(feature = "python")]
pub(crate) use probe::{doors_of, doors_of_class, names_of};
#[cfg(feature = "python")]
pub(crate) use producer::is_plain_ndarray;

/// What is known of an object before a door is tried.
#[cfg(feature = "python")]
#[derive(Debug, Clone, Copy)]
struct ImportRequest {
    /// The producer's arrays never change: there is no point in asking for writable memory.
    immutable: bool,
    /// Its `__dlpack__` says better than anything else why it cannot be had.
    explains: bool,
    /// Memory on a device is to be brought to the host.
    to_host: bool,
    /// The producer may copy for that.
    may_copy: bool,
    /// Memory that the host cannot reach is as welcome.
    anywhere: bool,
    /// What is said of a device counts where there is no driver to ask.
    believed: bool,
}
