//! Made-up calls, and a model of the rules for them.

mod field;
mod rules;
mod sharing;

pub use field::{DATA, Field, fields, maybe, three};
pub use rules::{are_inside, boxes, found_boxes, placed};
pub use sharing::{Lying, has_single_points, may_share};
