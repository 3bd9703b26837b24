//! Memory: from the claims of a producer to a tensor that can be trusted.
//!
//! ```text
//! Untrusted ──check──▶ Checked ──into_managed──▶ Managed
//! ```
//!
//! Each type is made by value from the one before. Nothing can be reached through an [`Untrusted`]
//! tensor. The numbers of a `Checked` one cannot lie about arithmetic. A [`Managed`] tensor is where
//! it says and owns its memory: code that has one does not check again. A step that refuses gives
//! back what it was given, so that the tensor stays with its previous owner.

mod owner;
mod untrusted;
mod checked;
mod tensor;
mod located;

pub(crate) use checked::{Checked, Described, Refusal};
#[cfg(feature = "python")]
pub(crate) use checked::{check_ndim, read_numbers, read_prototype};
pub(crate) use owner::Owner;
pub use tensor::Managed;
pub use untrusted::Untrusted;
