//! Words: the properties of a field besides its memory: names of dimensions, halo, and the
//! requested alignment.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

mod dims;
mod matching;
mod placing;
mod description;
mod joining;
mod unjoined;
mod joined_labels;
mod reduced;
mod labels;
mod view;

pub use description::{Field, Halo};
pub(crate) use description::{HaloWidth, unlabelled};
pub use dims::{Dim, Dims};
pub(crate) use dims::{further_data_dims, show_dims, unknown_dim};
pub(crate) use joining::{Joined, Operand};
pub(crate) use labels::{HaloLabel, Labelled, Labels, check_names};
pub(crate) use matching::{
    Axes, AxisOrder, align_by_name, align_key, are_unrelated, is_only_numbered, mapping,
};
pub(crate) use placing::assigned;
pub(crate) use reduced::Reduced;
