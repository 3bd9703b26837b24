//! Modules and launches. A kernel runs as the host function registered under its name.

use std::ffi::{c_char, c_uint, c_void};

use crate::ffi::{Handle, In, Out};
use crate::kernels::{Dimensions, Function, Launch};
use crate::queues::Work;
use crate::run::{answer, with};
use crate::status::{Outcome, Status, refuse};

/// First bytes of binaries: ELF, and NVIDIA's container of several.
const BINARIES: [u32; 2] = [u32::from_le_bytes(*b"\x7fELF"), 0xBA55_ED50];

#[unsafe(no_mangle)]
extern "C" fn cuModuleLoadData(module: Out<Handle>, image: In<c_void>) -> Status {
    answer(|| {
        let text = text(image)?;
        let handle = with(|driver| {
            let device = driver.working()?;
            let handle = driver.handle();
            driver.kernels.load(handle, device, text);
            Ok(handle)
        })?;
        module.put(handle)
    })
}

/// Refuses options: there is no compiler.
#[unsafe(no_mangle)]
extern "C" fn cuModuleLoadDataEx(
    module: Out<Handle>,
    image: In<c_void>,
    count: c_uint,
    _options: In<c_uint>,
    _values: In<*mut c_void>,
) -> Status {
    if count == 0 { cuModuleLoadData(module, image) } else { Status::NOT_SUPPORTED }
}

/// Checks that an image looks like PTX, which is a text. Binaries are not read.
fn text(image: In<c_void>) -> Outcome<Option<String>> {
    if image.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // Reads at most four bytes, one by one: a text may be shorter.
    let binary = BINARIES.iter().any(|binary| starts_with(image, &binary.to_le_bytes()));
    if binary {
        return Ok(None);
    }
    let text = image.of::<c_char>().text()?;
    if text.contains(".version") && text.contains(".target") {
        return Ok(Some(text));
    }
    refuse(Status::INVALID_PTX, "module: expected PTX with .version and .target, got neither")
}

fn starts_with(image: In<c_void>, bytes: &[u8]) -> bool {
    (1..=bytes.len()).all(|n| image.of::<u8>().list(n).is_ok_and(|head| head == bytes[..n]))
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(module: Handle) -> Status {
    answer(|| with(|driver| driver.kernels.unload(module)))
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleGetFunction(
    function: Out<Handle>,
    module: Handle,
    name: In<c_char>,
) -> Status {
    answer(|| {
        let name = name.text()?;
        let handle = with(|driver| {
            let handle = driver.handle();
            driver.kernels.find(handle, module, &name).map(|()| handle)
        })?;
        function.put(handle)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchKernel(
    function: Handle,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: Handle,
    arguments: In<In<c_void>>,
    extra: In<*mut c_void>,
) -> Status {
    answer(|| {
        if !extra.is_null() {
            // Arguments as one buffer are not supported.
            return Err(Status::NOT_SUPPORTED);
        }
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let dimensions = Dimensions { grid, block, shared_bytes };
        dimensions.check()?;
        let function = with(|driver| driver.kernels.function(function).cloned())?;
        let arguments = take(&function, arguments)?;
        with(|driver| {
            let (stream, device) = driver.stream(stream)?;
            if device != function.device {
                return Err(Status::INVALID_HANDLE);
            }
            driver.stats.kernels += 1;
            let body = function.emulation.body;
            driver.queues.push(stream, Work::Kernel(Launch { body, dimensions, arguments }));
            Ok(())
        })
    })
}

/// Copies the arguments, because the caller's are gone when the kernel runs.
fn take(function: &Function, arguments: In<In<c_void>>) -> Outcome<Vec<Vec<u128>>> {
    let sizes = &function.emulation.sizes;
    let given = arguments.list(sizes.len())?;
    given.into_iter().zip(sizes).map(|(argument, size)| words(argument, *size)).collect()
}

fn words(argument: In<c_void>, size: usize) -> Outcome<Vec<u128>> {
    let bytes = argument.of::<u8>().list(size)?;
    let whole = |chunk: &[u8]| {
        let mut word = [0; 16];
        word[..chunk.len()].copy_from_slice(chunk);
        u128::from_ne_bytes(word)
    };
    Ok(bytes.chunks(16).map(whole).collect())
}
