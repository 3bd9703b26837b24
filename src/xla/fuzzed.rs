//! All that a frame says, for fuzz targets.

use std::ffi::c_void;

use super::abi::CallFrame;
use super::frame::{Frame, Lent};
use crate::error::Result;
use crate::managed::Managed;

/// The name of the entry, the inputs and the outputs.
type Contents = (Result<String>, Result<Vec<Managed>>, Result<Vec<Managed>>);

/// Reads a call frame as the handler does.
///
/// # Errors
/// As [`Frame::read`].
///
/// # Safety
/// As of [`crate::fuzzed::read_frame`].
pub(crate) unsafe fn read_frame(frame: *const c_void) -> Result<Contents> {
    // SAFETY: the caller's promise.
    let frame = unsafe { &*frame.cast::<CallFrame>() };
    let (frame, lent) = (Frame::read(frame)?, Lent::default());
    Ok((frame.entry().map(str::to_owned), frame.inputs(&lent), frame.outputs(&lent)))
}
