//! What the targets of `tests/fuzz` reach of rules that are private otherwise. Only a build with
//! `--cfg fuzzing` has this module.

mod words;
mod copies;
mod calls;
mod frames;

#[cfg(feature = "python")]
pub use crate::module::make_known;

pub use calls::{Answer, Boxes, Given, Reach, Rule, Uses, Wishes, resolve};
pub use copies::copy_by;
pub use frames::{Contents, read_frame};
pub use words::{Joint, join, join_within, may_overlap, place, select};
