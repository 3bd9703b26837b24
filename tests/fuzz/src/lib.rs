//! What several targets share.

pub mod call;
pub mod elements;
#[cfg(feature = "python")]
pub mod python;
