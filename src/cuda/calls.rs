//! The driver's functions, under their own names. Only this file names cudarc.
//!
//! cudarc finds the library. Its functions are not used: they panic if a symbol is missing, and
//! return an enum that has no value for the errors of newer drivers. Here, every symbol is looked
//! up before the first call, and a status is a number.
#![expect(non_snake_case, clippy::too_many_arguments, reason = "as in cuda.h")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;

#[cfg(feature = "cuda")]
use cudarc::driver::sys;

use crate::error::{Error, Result};

/// Source or target of a copy of planes of rows (`CUDA_MEMCPY3D` in cuda.h). What describes CUDA's
/// arrays stays 0.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PitchedSide {
    position: [usize; 4],
    memory_type: u32,
    host: u64,
    device: u64,
    array: [usize; 2],
    pitch: usize,
    rows: usize,
}

impl PitchedSide {
    /// Memory of the host or a device, with `pitch` bytes from one row to the next, and `rows` rows
    /// from one plane to the next, gaps between planes included.
    pub(crate) fn new(address: u64, on_host: bool, pitch: usize, rows: usize) -> Self {
        let memory_type = if on_host { 1 } else { 2 };
        Self { memory_type, host: address, device: address, pitch, rows, ..Self::default() }
    }
}

/// A copy of `depth` planes of `height` rows of `width` bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pitched {
    pub(crate) source: PitchedSide,
    pub(crate) target: PitchedSide,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// A failed call of the driver.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    call: &'static str,
    code: u32,
}

pub(super) type DriverResult<T = ()> = Result<T, Refused>;

impl Refused {
    pub(super) const INVALID_VALUE: u32 = 1;
    pub(super) const OUT_OF_MEMORY: u32 = 2;
    const NOT_INITIALIZED: u32 = 3;
    pub(super) const NO_DEVICE: u32 = 100;
    pub(super) const INVALID_CONTEXT: u32 = 201;
    pub(super) const NOT_READY: u32 = 600;

    pub(super) fn is(&self, code: u32) -> bool {
        self.code == code
    }
}

impl From<Refused> for Error {
    fn from(Refused { call, code }: Refused) -> Self {
        Self::Device(format!(
            "CUDA: expected {call} to succeed, got error {code} ({}); after a failed kernel or \
             copy of any library, only a new process can use the device again",
            described(code)
        ))
    }
}

/// Declares functions: a table of them, a function that fills it, and one of the same name for each
/// that calls it. One with a result (`->`) has a place for it as its first parameter in C.
macro_rules! functions {
    ($($([$unsafe:tt])? $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($(*mut $result,)? $($type),*) -> u32,)*
        }

        /// Looks up every function in the library that cudarc finds.
        #[cfg(feature = "cuda")]
        fn load() -> Result<Functions> {
            // SAFETY: loading the driver only runs its initialisers, which have no requirements.
            if !unsafe { sys::is_culib_present() } {
                return Err(no_library());
            }
            // SAFETY: as for is_culib_present. The library is present, so this does not panic.
            let library = unsafe { sys::culib() };
            Ok(Functions { $($name: {
                // SAFETY: the type is that of the function with this name in cuda.h.
                let found = unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) };
                *found.map_err(|_| no_symbol(stringify!($name)))?
            },)* })
        }

        $(caller! { ($($unsafe)?) $name($($argument: $type),*) $(-> $result)? })*
    };
}

macro_rules! caller {
    (($($unsafe:tt)?) $name:ident($($argument:ident: $type:ty),*)) => {
        pub(super) $($unsafe)? fn $name($($argument: $type),*) -> DriverResult {
            // SAFETY: the type of the function is right (load); the caller guarantees the rest.
            called(stringify!($name), |functions| unsafe { (functions.$name)($($argument),*) })
        }
    };
    (($($unsafe:tt)?) $name:ident($($argument:ident: $type:ty),*) -> $result:ty) => {
        pub(super) $($unsafe)? fn $name($($argument: $type),*) -> DriverResult<$result> {
            let mut result = <$result>::default();
            let place = &raw mut result;
            // SAFETY: as above, and `place` has room for the result.
            let call = |functions: &Functions| unsafe { (functions.$name)(place, $($argument),*) };
            called(stringify!($name), call)?;
            Ok(result)
        }
    };
}

// Handles are numbers, and 0 means none. The context of the device must be current.
//
// A function is unsafe if a wrong number reaches memory. The caller guarantees that
// - handles are valid, and nothing uses one after it was destroyed;
// - memory may be read and written until the work on it is done;
// - memory is freed once, by the function for its kind, when nothing uses it any more; only
//   cuMemFreeAsync may follow work on its stream;
// - everything behind a pointer is as in cuda.h.
functions! {
    cuInit(flags: c_uint);
    cuDriverGetVersion() -> c_int;
    [unsafe] cuGetErrorName(code: u32, name: *mut *const c_char);
    [unsafe] cuGetErrorString(code: u32, text: *mut *const c_char);
    cuDeviceGet(ordinal: c_int) -> c_int;
    cuDeviceGetCount() -> c_int;
    cuDeviceGetAttribute(attribute: c_uint, device: c_int) -> c_int;
    [unsafe] cuDeviceGetName(name: *mut c_char, room: c_int, device: c_int);
    cuDeviceTotalMem_v2(device: c_int) -> usize;
    cuDevicePrimaryCtxRetain(device: c_int) -> usize;
    cuCtxGetCurrent() -> usize;
    cuCtxGetDevice() -> c_int;
    cuCtxPushCurrent_v2(context: usize);
    cuCtxPopCurrent_v2() -> usize;
    cuCtxSynchronize();
    cuStreamCreate(flags: c_uint) -> usize;
    [unsafe] cuStreamGetCtx(stream: usize, context: *mut usize);
    [unsafe] cuStreamSynchronize(stream: usize);
    [unsafe] cuStreamWaitEvent(stream: usize, event: usize, flags: c_uint);
    cuEventCreate(flags: c_uint) -> usize;
    [unsafe] cuEventRecord(event: usize, stream: usize);
    [unsafe] cuEventQuery(event: usize);
    [unsafe] cuEventSynchronize(event: usize);
    [unsafe] cuEventDestroy_v2(event: usize);
    cuMemAlloc_v2(bytes: usize) -> u64;
    [unsafe] cuMemFree_v2(address: u64);
    [unsafe] cuMemAllocAsync(bytes: usize, stream: usize) -> u64;
    [unsafe] cuMemFreeAsync(address: u64, stream: usize);
    cuMemAllocManaged(bytes: usize, flags: c_uint) -> u64;
    cuMemHostAlloc(bytes: usize, flags: c_uint) -> u64;
    [unsafe] cuMemFreeHost(address: u64);
    cuPointerGetAttribute(attribute: c_uint, address: u64) -> u64;
    [unsafe] cuMemcpyAsync(target: u64, source: u64, bytes: usize, stream: usize);
    [unsafe] cuMemcpyPeerAsync(
        target: u64, to: usize, source: u64, from: usize, bytes: usize, stream: usize
    );
    [unsafe] cuMemcpy3DAsync_v2(copy: *const Pitched, stream: usize);
    [unsafe] cuMemsetD8Async(address: u64, value: u8, count: usize, stream: usize);
    [unsafe] cuMemsetD16Async(address: u64, value: u16, count: usize, stream: usize);
    [unsafe] cuMemsetD32Async(address: u64, value: c_uint, count: usize, stream: usize);
    [unsafe] cuModuleLoadData(image: *const c_void) -> usize;
    [unsafe] cuModuleGetFunction(module: usize, name: *const c_char) -> usize;
    [unsafe] cuLaunchKernel(
        function: usize, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared_bytes: c_uint, stream: usize,
        arguments: *const *const c_void, extra: *const *const c_void
    );
}

/// The functions, or the reason why they are missing.
static FUNCTIONS: OnceLock<Result<Functions>> = OnceLock::new();

/// Checks that the library and all functions are present. Looks for them once.
///
/// # Errors
/// [`Error::Device`] that names what is missing.
pub(super) fn check_present() -> Result<()> {
    FUNCTIONS.get_or_init(load).as_ref().map(|_| ()).map_err(Clone::clone)
}

#[cfg(not(feature = "cuda"))]
fn load() -> Result<Functions> {
    Err(Error::Device(
        "CUDA: expected a build of dlfield with the feature 'cuda', got one without; use host \
         memory"
            .into(),
    ))
}

fn no_library() -> Error {
    Error::Device(
        "CUDA: expected the driver's library (libcuda.so.1), got none on the loader's path; \
         install the NVIDIA driver, or use host memory"
            .into(),
    )
}

fn no_symbol(name: &str) -> Error {
    Error::Device(format!(
        "CUDA: expected a driver for CUDA 12.0 or later, got one without {name}; update the NVIDIA \
         driver"
    ))
}

/// Calls a function. Fails with `NOT_INITIALIZED` if `check_present` was never called.
fn called(call: &'static str, function: impl FnOnce(&Functions) -> u32) -> DriverResult {
    let code = match FUNCTIONS.get() {
        Some(Ok(functions)) => function(functions),
        _ => Refused::NOT_INITIALIZED,
    };
    if code == 0 { Ok(()) } else { Err(Refused { call, code }) }
}

/// Name and description of an error, as the driver gives them.
fn described(code: u32) -> String {
    let (mut name, mut text): (*const c_char, *const c_char) = (ptr::null(), ptr::null());
    // SAFETY: room for a pointer, which is NULL for an unknown code.
    let _ = unsafe { cuGetErrorName(code, &raw mut name) };
    // SAFETY: as for the name.
    let _ = unsafe { cuGetErrorString(code, &raw mut text) };
    let shown = |text: *const c_char| {
        if text.is_null() {
            return "unknown".into();
        }
        // SAFETY: the driver returns static texts that end in NUL (cuGetErrorName).
        unsafe { CStr::from_ptr(text) }.to_string_lossy()
    };
    format!("{}: {}", shown(name), shown(text))
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use std::mem::offset_of;

    use cudarc::driver::sys::CUDA_MEMCPY3D;

    use super::*;

    #[test]
    fn the_fields_lie_where_the_driver_reads_them() {
        assert_eq!(size_of::<Pitched>(), size_of::<CUDA_MEMCPY3D>());
        assert_eq!(
            [
                offset_of!(Pitched, source.memory_type),
                offset_of!(Pitched, source.host),
                offset_of!(Pitched, source.device),
                offset_of!(Pitched, source.pitch),
                offset_of!(Pitched, source.rows),
                offset_of!(Pitched, target.memory_type),
                offset_of!(Pitched, target.rows),
                offset_of!(Pitched, width),
                offset_of!(Pitched, depth),
            ],
            [
                offset_of!(CUDA_MEMCPY3D, srcMemoryType),
                offset_of!(CUDA_MEMCPY3D, srcHost),
                offset_of!(CUDA_MEMCPY3D, srcDevice),
                offset_of!(CUDA_MEMCPY3D, srcPitch),
                offset_of!(CUDA_MEMCPY3D, srcHeight),
                offset_of!(CUDA_MEMCPY3D, dstMemoryType),
                offset_of!(CUDA_MEMCPY3D, dstHeight),
                offset_of!(CUDA_MEMCPY3D, WidthInBytes),
                offset_of!(CUDA_MEMCPY3D, Depth),
            ]
        );
    }
}
