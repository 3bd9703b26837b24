//! Launches dlfield's own kernels. They are PTX for the oldest supported device; the driver
//! compiles them for a device on first use there.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use super::calls;
use super::context::enter;
use super::driver::PerDevice;
use super::stream::Stream;
use crate::error::Result;

/// Maximum number of loops of a kernel.
pub(crate) const MAX_WALKS: usize = 8;

/// One loop of a kernel: its count, and the distances in bytes that source and target move.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Walk {
    pub(crate) count: i64,
    pub(crate) source: i64,
    pub(crate) target: i64,
}

/// Argument of every kernel, by value (`struct Arguments` in the CUDA code).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Arguments {
    /// Address of the first element to read.
    pub(crate) source: u64,
    /// Address of the first element to write.
    pub(crate) target: u64,
    /// Bytes that a fill writes.
    pub(crate) value: [u64; 2],
    /// Number of walks in use, outermost first.
    pub(crate) dims: i64,
    pub(crate) walks: [Walk; MAX_WALKS],
}

/// The kernels, as `src/copy/kernels/compile.py` compiles them.
const PTX: &str = concat!(include_str!("../copy/kernels/layout.ptx"), "\0");

/// Enqueues a kernel on a stream.
///
/// # Errors
/// [`crate::Error::Device`] if the driver fails, for instance on a device that is too old.
///
/// # Safety
/// The kernel takes [`Arguments`]. With this value, grid and block it stays within memory that its
/// device can reach until the work is done.
pub(crate) unsafe fn launch(
    name: &'static CStr,
    (grid, block): (u32, [u32; 2]),
    arguments: &Arguments,
    stream: Stream,
) -> Result<()> {
    let _current = enter(stream.ordinal())?;
    let kernel = kernel(name, stream.ordinal())?;
    let [x, y] = block;
    let arguments = [ptr::from_ref(arguments).cast()];
    let (stream, arguments, extra) = (stream.handle(), arguments.as_ptr(), ptr::null());
    // SAFETY: `kernel` loaded the kernel in this context; the caller vouches for its arguments.
    Ok(unsafe { calls::cuLaunchKernel(kernel, grid, 1, 1, x, y, 1, 0, stream, arguments, extra) }?)
}

/// Returns the handle of a kernel. The context of the device must be current. Modules are never
/// unloaded, like their contexts.
fn kernel(name: &'static CStr, ordinal: i32) -> Result<usize> {
    static MODULES: PerDevice = PerDevice::new();
    static KERNELS: Mutex<BTreeMap<(i32, &CStr), usize>> = Mutex::new(BTreeMap::new());
    let mut kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kernel) = kernels.get(&(ordinal, name)) {
        return Ok(*kernel);
    }
    let module = MODULES.get(ordinal, || {
        // SAFETY: the text ends in NUL.
        Ok(unsafe { calls::cuModuleLoadData(PTX.as_ptr().cast()) }?)
    })?;
    // SAFETY: the module was loaded in the context of this device, which is current.
    let kernel = unsafe { calls::cuModuleGetFunction(module, name.as_ptr()) }?;
    kernels.insert((ordinal, name), kernel);
    Ok(kernel)
}
