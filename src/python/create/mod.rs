//! The functions that make storages: fresh memory, fresh memory like some other, memory that is there.

mod fresh;
mod allocation;
mod like;
mod data;

pub(crate) use allocation::Allocation;
pub(crate) use data::{as_storage, storage};
pub(crate) use fresh::{empty, full, ones, zeros};
pub(crate) use like::{empty_like, full_like, ones_like, zeros_like};
