//! Words: the boxes of a field that a halo exchange sends and receives, and the points that need no
//! halo. Pure arithmetic on shape, halo and width; messages are the caller's.
//!
//! Along one divided dimension, with `n` shared points and widths `(a, b)`:
//!
//! ```text
//! ......|<- a: receive(-1) ->|<- n ->|<- b: send(-1) ->| ... |<- a: send(+1) ->|<- n ->|<- b: receive(+1) ->|......
//!                            |<------------------ domain ---------------------------->|
//! ```
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

mod ends;
mod boxes;

pub use boxes::{HaloBoxes, IndexBox};
pub use ends::Divided;

#[cfg(test)]
mod tests;
