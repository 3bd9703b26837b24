//! Door: Arrow's C data interface, C device data interface and C stream interface.
//!
//! Source: Arrow's columnar format, "The Arrow C data interface", "The Arrow C device data
//! interface", "The Arrow C stream interface", "The Arrow PyCapsule interface", "Canonical
//! extension types". Arrow's data is immutable: an import is read-only, and the storage of an
//! export must not be written while the export lives.
//!
//! ```text
//! Storage ─ rows, metadata ──▶ export ──▶ arrow-rs ─┬─▶ capsule
//! Storage ◀── import ◀── structs ◀──────────────────┴── capsule
//! ```

mod names;
mod metadata;
mod rows;
mod structs;
mod export;
mod axes;
mod import;
mod crate_api;
#[cfg(feature = "python")]
mod device;
#[cfg(feature = "python")]
mod stream;
#[cfg(feature = "python")]
mod capsules;

#[cfg(feature = "python")]
pub(in crate::protocol) use capsules::import;
#[cfg(feature = "python")]
pub(crate) use capsules::{array_capsules, device_capsules, schema_capsule, table_capsules};
