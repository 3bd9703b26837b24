//! What several targets share.

pub mod call;
pub mod elements;
