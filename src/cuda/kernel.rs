//! Launching dlfield's own kernels. They are PTX for the oldest device that is supported; the driver
//! translates them for the device when they are first used there.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

use super::calls;
use super::context::enter;
use super::stream::Stream;
use crate::error::Result;

/// Most loops that a kernel walks.
pub(crate) const MAX_WALKS: usize = 8;

/// One loop of a kernel: how often, and how many bytes source and target move each time.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Walk {
    pub(crate) count: i64,
    pub(crate) source: i64,
    pub(crate) target: i64,
}

/// What every kernel is given, by value (`struct Arguments` in the CUDA code).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Arguments {
    /// Addresses of the first element.
    pub(crate) source: u64,
    pub(crate) target: u64,
    /// What a fill writes.
    pub(crate) value: [u64; 2],
    /// Walks in use, outermost first.
    pub(crate) dims: i64,
    pub(crate) walks: [Walk; MAX_WALKS],
}

/// Compiled by `src/copy/kernels/compile.py`.
const PTX: &str = concat!(include_str!("../copy/kernels/layout.ptx"), "\0");

/// Handles of a module and its kernels. Modules stay loaded, like the contexts they are in.
struct Loaded {
    module: usize,
    kernels: HashMap<&'static CStr, usize>,
}

/// By the number of the device.
static LOADED: Mutex<Option<HashMap<i32, Loaded>>> = Mutex::new(None);

/// Puts a kernel on a stream.
///
/// # Errors
/// What the driver refuses, for instance PTX on a device that is too old.
///
/// # Safety
/// The kernel takes [`Arguments`], and for these, with this grid and block, stays within memory that
/// its device reaches until the work is done.
pub(crate) unsafe fn launch(
    name: &'static CStr,
    (grid, block): (u32, [u32; 2]),
    arguments: &Arguments,
    stream: Stream,
) -> Result<()> {
    let _current = enter(stream.ordinal())?;
    let function = function(name, stream.ordinal())?;
    // SAFETY: the caller's promise; the function was loaded in this context.
    Ok(unsafe { calls::launch(function, grid, block, arguments, stream.handle()) }?)
}

/// The handle of a kernel in the current context, which is that of the device.
fn function(name: &'static CStr, ordinal: i32) -> Result<usize> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let devices = loaded.get_or_insert_default();
    let Loaded { module, kernels } = match devices.entry(ordinal) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(place) => {
            let ptx = CStr::from_bytes_with_nul(PTX.as_bytes()).unwrap_or_default();
            place.insert(Loaded { module: calls::load_module(ptx)?, kernels: HashMap::new() })
        }
    };
    if let Some(function) = kernels.get(name) {
        return Ok(*function);
    }
    // SAFETY: loaded in the context of this device, which is current.
    let function = unsafe { calls::function(*module, name) }?;
    kernels.insert(name, function);
    Ok(function)
}
