//! Door: DLPack, by capsule, in the versioned (1.x) and the legacy form.
//!
//! Source: dlpack.h 1.3 and the Python specification of the data interchange protocol.
//!
//! - `import` asks `__dlpack__` for a versioned capsule and takes what comes; the capsule's name
//!   says which struct it holds. It is renamed at once and its tensor released on every error.
//! - `export` makes a capsule whose tensor holds one reference to the memory. Nothing is copied
//!   unless `copy=True` asks for it. Strides are in elements.

mod tensor;
mod crate_api;
#[cfg(feature = "python")]
mod import;
#[cfg(feature = "python")]
mod export;
#[cfg(feature = "python")]
pub(crate) mod exchange;

#[cfg(feature = "python")]
pub(crate) use export::{ExportRequest, export, legacy_for_reader};
#[cfg(feature = "python")]
pub(in crate::protocol) use import::{import, import_from_cuda};
