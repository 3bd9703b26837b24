//! Doors: one file or folder for each protocol, with `import` and `export`.
//!
//! ```text
//! object ──▶ entrance ──Request──▶ a door of the table ──Offer──▶ entrance ──▶ Arrival
//! ```
//!
//! `door` has the request and the offer, `table` the doors and their order, and `entrance` the one way
//! in. A door may leave an object to a later one, as those that `__dlpack__` explains better.

#[cfg(feature = "python")]
pub(crate) mod read;
#[cfg(feature = "python")]
mod class;
#[cfg(feature = "python")]
mod lazy;
#[cfg(feature = "python")]
mod recorded;
#[cfg(feature = "python")]
mod producer;
#[cfg(feature = "python")]
pub(crate) mod hooks;
#[cfg(feature = "python")]
mod arrival;
#[cfg(feature = "python")]
pub(crate) mod door;
pub(crate) mod dlpack;
#[cfg(feature = "python")]
pub(crate) mod buffer;
#[cfg(feature = "python")]
pub(crate) mod array_interface;
#[cfg(feature = "python")]
mod array_struct;
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
mod ndsl;
#[cfg(feature = "python")]
mod storage;
#[cfg(feature = "python")]
mod table;
#[cfg(feature = "python")]
mod inspect;
#[cfg(feature = "python")]
mod nested;
#[cfg(feature = "python")]
mod entrance;

#[cfg(feature = "python")]
pub(crate) use arrival::Arrival;
#[cfg(feature = "python")]
pub(crate) use class::{Held, StorageClass, use_class};
#[cfg(feature = "python")]
pub(crate) use door::Request;
#[cfg(feature = "python")]
pub(crate) use entrance::import;
#[cfg(feature = "python")]
pub(crate) use inspect::{dims, door_names};
#[cfg(feature = "python")]
pub(crate) use producer::{is_noted, is_plain_ndarray, is_plain_tensor, note_written};
#[cfg(feature = "python")]
pub(crate) use xarray::{array_and_dims, array_in};
