//! The error type of the crate, below every other file of the road.

mod kinds;
#[cfg(feature = "python")]
mod python;

pub use kinds::{Error, Result};
pub(crate) use kinds::{quoted, shortened};
#[cfg(feature = "python")]
pub(crate) use python::{DeviceUnavailable, Failure, absent, no_such_buffer};
