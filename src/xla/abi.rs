//! The structs of XLA's C API, version 0.1, as far as the handler uses them. Later versions append
//! fields. `frame` and `handler` check that what they get is as large as the part that is used.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

/// The version that the handler claims. XLA serves handlers of older versions for at least a year.
pub(super) const VERSION: (i32, i32) = (0, 1);
/// `XLA_FFI_ExecutionStage_EXECUTE`.
pub(super) const EXECUTE: u32 = 3;
/// `XLA_FFI_Extension_Metadata`.
pub(super) const METADATA: u32 = 1;
/// `XLA_FFI_AttrType_STRING`: the attribute is a `ByteSpan`.
pub(super) const STRING: u32 = 4;
/// `XLA_FFI_Error_Code`: those of absl.
pub(super) const INVALID_ARGUMENT: u32 = 3;
pub(super) const INTERNAL: u32 = 13;
pub(super) const UNAVAILABLE: u32 = 14;

#[repr(C)]
pub(super) struct Extension {
    pub(super) size: usize,
    pub(super) kind: u32,
    pub(super) next: *mut Extension,
}

#[repr(C)]
pub(super) struct ApiVersion {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) major: i32,
    pub(super) minor: i32,
}

#[repr(C)]
pub(super) struct Metadata {
    pub(super) size: usize,
    pub(super) version: ApiVersion,
    pub(super) traits: u32,
}

#[repr(C)]
pub(super) struct MetadataExtension {
    pub(super) base: Extension,
    pub(super) metadata: *mut Metadata,
}

#[repr(C)]
pub(super) struct Buffer {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) dtype: u32,
    pub(super) data: *mut c_void,
    pub(super) rank: i64,
    pub(super) dims: *const i64,
}

/// Arguments, and results: both have this form.
#[repr(C)]
pub(super) struct Buffers {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) count: i64,
    pub(super) kinds: *const u32,
    pub(super) each: *const *const Buffer,
}

#[repr(C)]
pub(super) struct ByteSpan {
    pub(super) start: *const c_char,
    pub(super) length: usize,
}

#[repr(C)]
pub(super) struct Attributes {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) count: i64,
    pub(super) kinds: *const u32,
    pub(super) names: *const *const ByteSpan,
    pub(super) each: *const *const c_void,
}

#[repr(C)]
pub(super) struct CallFrame {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) api: *const Api,
    pub(super) context: *mut c_void,
    pub(super) stage: u32,
    pub(super) arguments: Buffers,
    pub(super) results: Buffers,
    pub(super) attributes: Attributes,
}

/// An error that XLA makes, and owns once it is returned.
#[repr(C)]
pub(super) struct XlaError {
    _opaque: [u8; 0],
}

#[repr(C)]
pub(super) struct ErrorCreateArgs {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) message: *const c_char,
    pub(super) code: u32,
}

pub(super) type ErrorCreate = unsafe extern "C" fn(*mut ErrorCreateArgs) -> *mut XlaError;

/// The beginning of the table of XLA's functions.
#[repr(C)]
pub(super) struct Api {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) version: ApiVersion,
    pub(super) internal: *const c_void,
    pub(super) error_create: Option<ErrorCreate>,
}

/// Sizes as XLA counts them: up to the end of the last field, without padding.
pub(super) const ERROR_CREATE_ARGS: usize = offset_of!(ErrorCreateArgs, code) + size_of::<u32>();
pub(super) const METADATA_SIZE: usize = offset_of!(Metadata, traits) + size_of::<u32>();

// Offsets and sizes as a C program prints them for the header of jaxlib 0.10 and 0.12.
const _: () = {
    assert!(offset_of!(Buffer, dtype) == 16 && offset_of!(Buffer, data) == 24);
    assert!(offset_of!(Buffer, rank) == 32 && offset_of!(Buffer, dims) == 40);
    assert!(offset_of!(Buffers, kinds) == 24 && offset_of!(Buffers, each) == 32);
    assert!(offset_of!(Attributes, names) == 32 && offset_of!(Attributes, each) == 40);
    assert!(offset_of!(CallFrame, stage) == 32 && offset_of!(CallFrame, arguments) == 40);
    assert!(offset_of!(CallFrame, results) == 80 && offset_of!(CallFrame, attributes) == 120);
    assert!(size_of::<CallFrame>() == 168);
    assert!(offset_of!(Metadata, version) == 8 && offset_of!(Metadata, traits) == 32);
    assert!(METADATA_SIZE == 36 && ERROR_CREATE_ARGS == 28);
    assert!(offset_of!(MetadataExtension, metadata) == 24);
    assert!(offset_of!(Api, internal) == 40 && offset_of!(Api, error_create) == 48);
};
