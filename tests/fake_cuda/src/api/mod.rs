//! The exported functions, by what they are about. Signatures and numbers are `cuda.h`'s; each
//! turns its arguments into a request of the modules above and gives the answer's number.
#![allow(non_snake_case, reason = "the names are the driver's")]

mod start;

mod device;

mod context;

mod memory;

mod host;

mod pools;

mod pointer;

mod copy;

mod pitched;

mod fill;

mod stream;

mod event;

mod kernel;

mod tests;
