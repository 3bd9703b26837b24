//! Registers, with the operations of a transposition.
//!
//! A register consists of lanes of 16 bytes. Each kind is a type of the compiler; plain bytes
//! serve other processors.

mod register;
mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "aarch64")]
mod neon;

#[cfg(target_arch = "aarch64")]
pub(super) use neon::Pair;
pub(super) use plain::Plain;
pub(super) use register::{Register, fence, prefetch, prefetch_to_write};
