//! Door: Arrow's C data interface, C device data interface and C stream interface.
//!
//! Source: Arrow's columnar format, "The Arrow C data interface", "The Arrow C device data interface", "The Arrow
//! C stream interface", "The Arrow PyCapsule interface", "Canonical extension types". Arrow's data is immutable:
//! an import is read-only, an export only as long as nobody writes the storage.
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

use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ArrowError;
use arrow_schema::ffi::FFI_ArrowSchema;

use crate::error::Error;
use structs::{Array, Schema};

#[cfg(feature = "python")]
pub(in crate::protocol) use capsules::import;
#[cfg(feature = "python")]
pub(crate) use capsules::{array_capsules, device_capsules, schema_capsule, table_capsules};

/// What arrow-rs refuses: a name with a NUL in it, which C cannot have.
#[expect(clippy::needless_pass_by_value, reason = "what map_err has")]
fn failed(error: ArrowError) -> Error {
    Error::Argument(format!("Arrow: {error}"))
}

/// The same struct, as it is read here.
fn from_ffi(array: FFI_ArrowArray) -> Array {
    // SAFETY: both are `struct ArrowArray` of the C data interface, field for field, and both release it when
    // they are dropped: what was one is the other from here on.
    unsafe { std::mem::transmute(array) }
}

/// As `from_ffi`.
fn schema_from_ffi(schema: FFI_ArrowSchema) -> Schema {
    // SAFETY: as above, `struct ArrowSchema`.
    unsafe { std::mem::transmute(schema) }
}
