//! The error type of the crate, below every other file of the road.

mod kinds;
mod nearest;
#[cfg(feature = "python")]
mod python;

pub use kinds::{Error, Result};
pub(crate) use kinds::{quoted, quoted_name, shortened, shown_name};
pub(crate) use nearest::did_you_mean;
#[cfg(feature = "python")]
pub(crate) use python::{DeviceUnavailable, Failure, absent, no_such_buffer};
