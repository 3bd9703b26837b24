//! The functions of the driver that dlfield calls, each with its answer as a `Result`.
//!
//! Handles are numbers. A function is `unsafe` where a wrong number reaches memory: who calls it says
//! why the memory is there. The context of the device must be current.

use std::ffi::{CStr, c_void};
use std::ptr;

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUmemorytype};

use super::library::call;
pub(super) use super::library::{Answer, Refused, check_present};
use super::pitched::{Pitched, Side};

// Devices and contexts.

pub(super) fn init() -> Answer {
    call!(cuInit(0))
}

pub(super) fn device_count() -> Answer<i32> {
    let mut count = 0;
    call!(cuDeviceGetCount(&raw mut count))?;
    Ok(count)
}

/// The driver's handle of a device.
pub(super) fn device(ordinal: i32) -> Answer<i32> {
    let mut device = 0;
    call!(cuDeviceGet(&raw mut device, ordinal))?;
    Ok(device)
}

pub(super) fn device_attribute(device: i32, attribute: u32) -> Answer<i32> {
    let mut value = 0;
    call!(cuDeviceGetAttribute(&raw mut value, attribute, device))?;
    Ok(value)
}

pub(super) fn retain_primary(device: i32) -> Answer<usize> {
    let mut context = 0;
    call!(cuDevicePrimaryCtxRetain(&raw mut context, device))?;
    Ok(context)
}

/// The context of this thread; 0: none.
pub(super) fn current() -> Answer<usize> {
    let mut context = 0;
    call!(cuCtxGetCurrent(&raw mut context))?;
    Ok(context)
}

pub(super) fn current_device() -> Answer<i32> {
    let mut device = 0;
    call!(cuCtxGetDevice(&raw mut device))?;
    Ok(device)
}

pub(super) fn push(context: usize) -> Answer {
    call!(cuCtxPushCurrent_v2(context))
}

pub(super) fn pop() -> Answer {
    let mut context = 0;
    call!(cuCtxPopCurrent_v2(&raw mut context))
}

pub(super) fn synchronize_context() -> Answer {
    call!(cuCtxSynchronize())
}

// Streams and events.

pub(super) fn create_stream(flags: u32) -> Answer<usize> {
    let mut stream = 0;
    call!(cuStreamCreate(&raw mut stream, flags))?;
    Ok(stream)
}

/// # Safety
/// `stream` is a stream.
pub(super) unsafe fn context_of_stream(stream: usize) -> Answer<usize> {
    let mut context = 0;
    call!(cuStreamGetCtx(stream, &raw mut context))?;
    Ok(context)
}

/// # Safety
/// `stream` is a stream.
pub(super) unsafe fn synchronize_stream(stream: usize) -> Answer {
    call!(cuStreamSynchronize(stream))
}

/// # Safety
/// `stream` is a stream and `event` an event.
pub(super) unsafe fn wait_event(stream: usize, event: usize) -> Answer {
    call!(cuStreamWaitEvent(stream, event, 0))
}

pub(super) fn create_event() -> Answer<usize> {
    const DISABLE_TIMING: u32 = 2;
    let mut event = 0;
    call!(cuEventCreate(&raw mut event, DISABLE_TIMING))?;
    Ok(event)
}

/// # Safety
/// `event` is an event and `stream` a stream.
pub(super) unsafe fn record_event(event: usize, stream: usize) -> Answer {
    call!(cuEventRecord(event, stream))
}

/// Whether all work before an event is done.
///
/// # Safety
/// `event` is an event.
pub(super) unsafe fn query_event(event: usize) -> Answer<bool> {
    match call!(cuEventQuery(event)) {
        Err(refused) if refused.is(Refused::NOT_READY) => Ok(false),
        answer => answer.map(|()| true),
    }
}

/// # Safety
/// `event` is an event.
pub(super) unsafe fn synchronize_event(event: usize) -> Answer {
    call!(cuEventSynchronize(event))
}

/// # Safety
/// `event` is an event that nobody uses again.
pub(super) unsafe fn destroy_event(event: usize) -> Answer {
    call!(cuEventDestroy_v2(event))
}

// Memory.

pub(super) fn alloc(bytes: usize) -> Answer<u64> {
    let mut address = 0;
    call!(cuMemAlloc_v2(&raw mut address, bytes))?;
    Ok(address)
}

/// # Safety
/// `address` came from [`alloc`] or [`alloc_managed`], and nothing reaches it any more.
pub(super) unsafe fn free(address: u64) -> Answer {
    call!(cuMemFree_v2(address))
}

/// # Safety
/// `stream` is a stream.
pub(super) unsafe fn alloc_async(bytes: usize, stream: usize) -> Answer<u64> {
    let mut address = 0;
    call!(cuMemAllocAsync(&raw mut address, bytes, stream))?;
    Ok(address)
}

/// # Safety
/// `address` came from [`alloc_async`], and nothing reaches it but work before this on `stream`.
pub(super) unsafe fn free_async(address: u64, stream: usize) -> Answer {
    call!(cuMemFreeAsync(address, stream))
}

pub(super) fn alloc_managed(bytes: usize) -> Answer<u64> {
    const ATTACH_GLOBAL: u32 = 1;
    let mut address = 0;
    call!(cuMemAllocManaged(&raw mut address, bytes, ATTACH_GLOBAL))?;
    Ok(address)
}

/// Page-locked host memory, as fast to read as any other (not write-combined).
pub(super) fn alloc_host(bytes: usize) -> Answer<u64> {
    const PORTABLE: u32 = 1;
    let mut start: *mut c_void = ptr::null_mut();
    call!(cuMemHostAlloc(&raw mut start, bytes, PORTABLE))?;
    Ok(start.expose_provenance() as u64)
}

/// # Safety
/// `address` came from [`alloc_host`], and nothing reaches it any more.
pub(super) unsafe fn free_host(address: u64) -> Answer {
    call!(cuMemFreeHost(pointer(address)))
}

/// One attribute of an address.
pub(super) fn pointer_attribute(attribute: u32, address: u64) -> Answer<u32> {
    let mut value = 0_u64; // room for the largest
    call!(cuPointerGetAttribute((&raw mut value).cast(), attribute, address))?;
    Ok(u32::from_ne_bytes(first_bytes(value)))
}

/// The number of the allocation that an address is in, which no other of the process has.
pub(super) fn pointer_identity(address: u64) -> Answer<u64> {
    const BUFFER_ID: u32 = 7;
    let mut value = 0_u64;
    call!(cuPointerGetAttribute((&raw mut value).cast(), BUFFER_ID, address))?;
    Ok(value)
}

fn first_bytes(value: u64) -> [u8; 4] {
    let [a, b, c, d, ..] = value.to_ne_bytes();
    [a, b, c, d]
}

// Copies and fills.

/// # Safety
/// `bytes` from both addresses on may be read and written until the copy is done; `stream` is a
/// stream. So for all functions below.
pub(super) unsafe fn copy(target: u64, source: u64, bytes: usize, stream: usize) -> Answer {
    call!(cuMemcpyAsync(target, source, bytes, stream))
}

/// # Safety
/// As [`copy`]; the contexts are those of the devices.
pub(super) unsafe fn copy_peer(
    (target, to): (u64, usize),
    (source, from): (u64, usize),
    bytes: usize,
    stream: usize,
) -> Answer {
    call!(cuMemcpyPeerAsync(target, to, source, from, bytes, stream))
}

/// # Safety
/// As [`copy`], for every row.
pub(super) unsafe fn copy_2d(copy: &Pitched, stream: usize) -> Answer {
    let (source, target) = (&copy.source, &copy.target);
    let copy = CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: memory_type(source),
        srcHost: pointer(source.address),
        srcDevice: source.address,
        srcArray: ptr::null_mut(),
        srcPitch: source.pitch,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: memory_type(target),
        dstHost: pointer(target.address),
        dstDevice: target.address,
        dstArray: ptr::null_mut(),
        dstPitch: target.pitch,
        WidthInBytes: copy.width,
        Height: copy.height,
    };
    call!(cuMemcpy2DAsync_v2(&raw const copy, stream))
}

/// # Safety
/// As [`copy`], for every row of every plane.
pub(super) unsafe fn copy_3d(copy: &Pitched, stream: usize) -> Answer {
    let (source, target) = (&copy.source, &copy.target);
    let copy = CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: memory_type(source),
        srcHost: pointer(source.address),
        srcDevice: source.address,
        srcArray: ptr::null_mut(),
        reserved0: ptr::null_mut(),
        srcPitch: source.pitch,
        srcHeight: source.rows,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: memory_type(target),
        dstHost: pointer(target.address),
        dstDevice: target.address,
        dstArray: ptr::null_mut(),
        reserved1: ptr::null_mut(),
        dstPitch: target.pitch,
        dstHeight: target.rows,
        WidthInBytes: copy.width,
        Height: copy.height,
        Depth: copy.depth,
    };
    call!(cuMemcpy3DAsync_v2(&raw const copy, stream))
}

fn memory_type(side: &Side) -> CUmemorytype {
    if side.on_host { CUmemorytype::CU_MEMORYTYPE_HOST } else { CUmemorytype::CU_MEMORYTYPE_DEVICE }
}

fn pointer(address: u64) -> *mut c_void {
    usize::try_from(address).map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut)
}

/// Writes `count` times the first 1, 2 or 4 bytes of `value`.
///
/// # Safety
/// As [`copy`]; `address` is a multiple of the bytes.
pub(super) unsafe fn set(
    address: u64,
    value: [u8; 4],
    width: usize,
    count: usize,
    stream: usize,
) -> Answer {
    let [a, b, ..] = value;
    match width {
        1 => call!(cuMemsetD8Async(address, a, count, stream)),
        2 => call!(cuMemsetD16Async(address, u16::from_ne_bytes([a, b]), count, stream)),
        _ => call!(cuMemsetD32Async(address, u32::from_ne_bytes(value), count, stream)),
    }
}

// Kernels.

pub(super) fn load_module(ptx: &CStr) -> Answer<usize> {
    let mut module = 0;
    call!(cuModuleLoadData(&raw mut module, ptx.as_ptr().cast()))?;
    Ok(module)
}

/// # Safety
/// `module` is a module of the current context.
pub(super) unsafe fn function(module: usize, name: &CStr) -> Answer<usize> {
    let mut function = 0;
    call!(cuModuleGetFunction(&raw mut function, module, name.as_ptr()))?;
    Ok(function)
}

/// # Safety
/// `function` takes one parameter of the type of `argument`, and what it does with it is sound.
pub(super) unsafe fn launch<T>(
    function: usize,
    grid: u32,
    block: [u32; 2],
    argument: &T,
    stream: usize,
) -> Answer {
    let arguments = [ptr::from_ref(argument).cast::<c_void>()];
    let [x, y] = block;
    call!(cuLaunchKernel(function, grid, 1, 1, x, y, 1, 0, stream, arguments.as_ptr(), ptr::null()))
}
