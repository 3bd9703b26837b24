//! The driver's library: its functions, looked up once. The one file that names cudarc, beside
//! `calls`, which uses its structs.
//!
//! cudarc finds the library and says what its structs look like. Its own functions are not used: they
//! panic where a symbol is missing, and read the answer as an enum, which an error of a newer driver
//! is no value of. Here every symbol is looked up before the first call, and an answer is a number.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUDA_MEMCPY2D, CUDA_MEMCPY3D};

use crate::error::{Error, Result};

/// What the driver refused.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    pub(super) call: &'static str,
    pub(super) code: u32,
}

pub(super) type Answer<T = ()> = std::result::Result<T, Refused>;

impl Refused {
    pub(super) const OUT_OF_MEMORY: u32 = 2;
    pub(super) const NO_DEVICE: u32 = 100;
    pub(super) const INVALID_CONTEXT: u32 = 201;
    pub(super) const NOT_READY: u32 = 600;

    pub(super) fn is(&self, code: u32) -> bool {
        self.code == code
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        let Refused { call, code } = refused;
        Self::Device(format!(
            "CUDA: expected {call} to succeed, got error {code} ({}); where a kernel or a copy of any library has \
             failed, only a new process can use the device again",
            described(code)
        ))
    }
}

/// Declares the table of functions and how it is filled.
macro_rules! functions {
    ($($name:ident($($type:ty),*);)*) => {
        #[expect(non_snake_case, reason = "the driver's own names")]
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($type),*) -> u32,)*
        }

        /// Looks every function up in the library that cudarc finds.
        fn load() -> Result<Functions> {
            // SAFETY: loading the driver runs its initialisers, which any program may.
            if !unsafe { sys::is_culib_present() } {
                return Err(no_library());
            }
            // SAFETY: as above; the library is there, so that this does not panic.
            let library = unsafe { sys::culib() };
            Ok(Functions { $($name: {
                // SAFETY: the type is that of the function of this name in cuda.h.
                let found = unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) };
                *found.map_err(|_| no_symbol(stringify!($name)))?
            },)* })
        }
    };
}

functions! {
    cuInit(c_uint);
    cuGetErrorName(u32, *mut *const c_char);
    cuGetErrorString(u32, *mut *const c_char);
    cuDeviceGet(*mut c_int, c_int);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGetAttribute(*mut c_int, c_uint, c_int);
    cuDevicePrimaryCtxRetain(*mut usize, c_int);
    cuCtxGetCurrent(*mut usize);
    cuCtxGetDevice(*mut c_int);
    cuCtxPushCurrent_v2(usize);
    cuCtxPopCurrent_v2(*mut usize);
    cuCtxSynchronize();
    cuStreamCreate(*mut usize, c_uint);
    cuStreamGetCtx(usize, *mut usize);
    cuStreamSynchronize(usize);
    cuStreamWaitEvent(usize, usize, c_uint);
    cuEventCreate(*mut usize, c_uint);
    cuEventRecord(usize, usize);
    cuEventQuery(usize);
    cuEventSynchronize(usize);
    cuEventDestroy_v2(usize);
    cuMemAlloc_v2(*mut u64, usize);
    cuMemFree_v2(u64);
    cuMemAllocAsync(*mut u64, usize, usize);
    cuMemFreeAsync(u64, usize);
    cuMemAllocManaged(*mut u64, usize, c_uint);
    cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    cuMemFreeHost(*mut c_void);
    cuMemcpyAsync(u64, u64, usize, usize);
    cuMemcpyPeerAsync(u64, usize, u64, usize, usize, usize);
    cuMemcpy2DAsync_v2(*const CUDA_MEMCPY2D, usize);
    cuMemcpy3DAsync_v2(*const CUDA_MEMCPY3D, usize);
    cuMemsetD8Async(u64, u8, usize, usize);
    cuMemsetD16Async(u64, u16, usize, usize);
    cuMemsetD32Async(u64, c_uint, usize, usize);
    cuPointerGetAttribute(*mut c_void, c_uint, u64);
    cuModuleLoadData(*mut usize, *const c_void);
    cuModuleGetFunction(*mut usize, usize, *const c_char);
    cuLaunchKernel(usize, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, usize, *const *const c_void, *const *const c_void);
}

pub(super) static FUNCTIONS: OnceLock<Result<Functions>> = OnceLock::new();

/// Whether library and functions are there; looked for once.
///
/// # Errors
/// [`Error::Device`] that says what is missing.
pub(super) fn check_present() -> Result<()> {
    FUNCTIONS.get_or_init(load).as_ref().map(|_| ()).map_err(Clone::clone)
}

fn no_library() -> Error {
    Error::Device(
        "CUDA: expected the driver's library (libcuda.so.1), got none on the loader's path; install \
         the NVIDIA driver, or use host memory"
            .into(),
    )
}

fn no_symbol(name: &str) -> Error {
    Error::Device(format!(
        "CUDA: expected a driver for CUDA 12.0 or later, got one without {name}; update the NVIDIA driver"
    ))
}

/// One call. `UNLOADED` is the answer where nobody has looked whether the library is there.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {
        match $crate::cuda::library::FUNCTIONS.get() {
            Some(Ok(functions)) => {
                // SAFETY: the function of this name. Out-parameters are variables of the surrounding
                // function; what the other arguments must be, its caller vouches for.
                let code = unsafe { (functions.$name)($($argument),*) };
                if code == 0 {
                    Ok(())
                } else {
                    Err($crate::cuda::library::Refused { call: stringify!($name), code })
                }
            }
            _ => Err($crate::cuda::library::Refused {
                call: stringify!($name),
                code: $crate::cuda::library::UNLOADED,
            }),
        }
    };
}
pub(super) use call;

pub(super) const UNLOADED: u32 = 3; // CUDA_ERROR_NOT_INITIALIZED

fn described(code: u32) -> String {
    let (mut name, mut text): (*const c_char, *const c_char) = (ptr::null(), ptr::null());
    let _ = call!(cuGetErrorName(code, &raw mut name)); // NULL where it knows none
    let _ = call!(cuGetErrorString(code, &raw mut text));
    let shown = |text: *const c_char| {
        if text.is_null() {
            return "unknown".to_owned();
        }
        // SAFETY: a static text of the driver, which ends in NUL.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    format!("{}: {}", shown(name), shown(text))
}
