//! Objects of Python that claim to be arrays.

mod array_struct;
mod claims;
mod objects;
mod odd;
mod view;

pub use claims::{ARENA, Claims, arena};
pub use objects::{Door, Pickle};
pub use odd::Odd;
pub use view::View;
