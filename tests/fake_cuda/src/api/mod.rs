//! The exported functions, by subject. Signatures and numbers are those of `cuda.h`. Each function
//! turns its arguments into a request to the modules above, and returns the status as a number.
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
