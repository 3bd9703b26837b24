//! Call frames of XLA's.

use std::ffi::c_void;

use crate::error::Result;
use crate::managed::Managed;
use crate::xla;

/// The contents of a call frame.
#[derive(Debug)]
pub struct Contents {
    /// The name of the entry.
    pub entry: Result<String>,
    /// The memory of its inputs.
    pub inputs: Result<Vec<Managed>>,
    /// The memory of its outputs.
    pub outputs: Result<Vec<Managed>>,
}

/// Reads a call frame as the handler does.
///
/// # Errors
/// [`Error::Buffer`](crate::Error::Buffer) for a frame that is too small.
///
/// # Safety
/// `frame` points to a frame of XLA's, or to the first part of one, as long as its first number says. Each
/// array in it has as many entries as the frame says, and each entry is live. The memory of buffers is not
/// read.
pub unsafe fn read_frame(frame: *const c_void) -> Result<Contents> {
    // SAFETY: the caller's promise.
    let (entry, inputs, outputs) = unsafe { xla::read_frame(frame) }?;
    Ok(Contents { entry, inputs, outputs })
}
