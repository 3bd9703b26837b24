//! The interpreter, for code that may run with it, without it, and while it ends.
//!
//! `attached` is the one way from foreign code to Python, `ending` what threads do at the end, `caller` whose
//! code calls.

mod ending;
mod attached;
mod caller;

pub(crate) use attached::{
    DropAttached, InObject, attached, attached_and_counted, give_back, is_attached, raised,
    raised_by,
};
pub(crate) use caller::{Caller, has_matched_dims};
pub(crate) use ending::{Inside, prepare_for_the_end};
