//! Tests of `resolve`, without Python and without a stencil.

mod given;
mod axes;
mod domain;
mod memory;
mod fingerprint;
