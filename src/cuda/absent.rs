//! The functions of `calls` in a build without the feature `cuda`: nobody ever gets past
//! [`check_present`].

use std::ffi::CStr;

use super::pitched::Pitched;
use crate::error::{Error, Result};

/// What a driver would refuse.
#[derive(Debug, Clone)]
pub(super) struct Refused;

pub(super) type Answer<T = ()> = std::result::Result<T, Refused>;

impl Refused {
    pub(super) const OUT_OF_MEMORY: u32 = 2;
    pub(super) const NO_DEVICE: u32 = 100;
    pub(super) const INVALID_CONTEXT: u32 = 201;

    pub(super) fn is(&self, _code: u32) -> bool {
        false
    }
}

impl From<Refused> for Error {
    fn from(_: Refused) -> Self {
        Self::Device(
            "CUDA: expected a build of dlfield with the feature 'cuda', got one without; use host memory"
                .into(),
        )
    }
}

/// # Errors
/// Always.
pub(super) fn check_present() -> Result<()> {
    Err(Refused.into())
}

macro_rules! absent {
    ($($name:ident($($argument:ty),*) -> $answer:ty;)*) => {
        $(pub(super) fn $name($(_: $argument),*) -> Answer<$answer> {
            Err(Refused)
        })*
    };
}

/// Those that are unsafe in `calls`; here their callers' promises are not needed.
macro_rules! absent_unsafe {
    ($($name:ident($($argument:ty),*) -> $answer:ty;)*) => {
        $(
            /// # Safety
            /// Does nothing.
            pub(super) unsafe fn $name($(_: $argument),*) -> Answer<$answer> {
                Err(Refused)
            }
        )*
    };
}

absent! {
    init() -> ();
    device_count() -> i32;
    device(i32) -> i32;
    device_attribute(i32, u32) -> i32;
    retain_primary(i32) -> usize;
    current() -> usize;
    current_device() -> i32;
    push(usize) -> ();
    pop() -> ();
    synchronize_context() -> ();
    create_stream(u32) -> usize;
    create_event() -> usize;
    alloc(usize) -> u64;
    alloc_managed(usize) -> u64;
    alloc_host(usize) -> u64;
    pointer_attribute(u32, u64) -> u32;
    pointer_identity(u64) -> u64;
    load_module(&CStr) -> usize;
}

absent_unsafe! {
    context_of_stream(usize) -> usize;
    synchronize_stream(usize) -> ();
    wait_event(usize, usize) -> ();
    record_event(usize, usize) -> ();
    query_event(usize) -> bool;
    synchronize_event(usize) -> ();
    destroy_event(usize) -> ();
    free(u64) -> ();
    alloc_async(usize, usize) -> u64;
    free_async(u64, usize) -> ();
    free_host(u64) -> ();
    copy(u64, u64, usize, usize) -> ();
    copy_peer((u64, usize), (u64, usize), usize, usize) -> ();
    copy_2d(&Pitched, usize) -> ();
    copy_3d(&Pitched, usize) -> ();
    set(u64, [u8; 4], usize, usize, usize) -> ();
    function(usize, &CStr) -> usize;
}

/// # Safety
/// Does nothing.
pub(super) unsafe fn launch<T>(_: usize, _: u32, _: [u32; 2], _: &T, _: usize) -> Answer {
    Err(Refused)
}
