//! Devices and their attributes: those of an H200, with less memory.

use std::ffi::{c_char, c_int, c_uint};

use crate::driver::Lacks;
use crate::ffi::Out;
use crate::run::{answer, with};
use crate::status::{Outcome, Status};

/// `CU_DEVICE_ATTRIBUTE_MAX_PITCH`, the limit for 2D and 3D copies.
pub(super) const MAX_PITCH: usize = 0x7fff_ffff;
/// The last attribute of CUDA 13.0. Lower ones that `attribute` does not list are 0.
const LAST_ATTRIBUTE: c_uint = 148;

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetCount(count: Out<c_int>) -> Status {
    answer(|| {
        let devices = with(|driver| Ok(driver.devices.len()))?;
        count.put(c_int::try_from(devices).map_err(|_| Status::INVALID_VALUE)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) -> Status {
    answer(|| exists(ordinal).and_then(|()| device.put(ordinal)))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetName(name: Out<c_char>, room: c_int, device: c_int) -> Status {
    answer(|| {
        exists(device)?;
        let room = usize::try_from(room).map_err(|_| Status::INVALID_VALUE)?;
        name.put_text(&format!("fake CUDA device {device}"), room)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, device: c_int) -> Status {
    answer(|| {
        exists(device)?;
        let mut bytes = *b"dlfield fake GPU";
        bytes[15] = u8::try_from(device).unwrap_or(u8::MAX);
        uuid.put(bytes)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: c_int) -> Status {
    cuDeviceGetUuid(uuid, device)
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: c_int) -> Status {
    answer(|| {
        exists(device)?;
        let capacity = with(|driver| Ok(driver.memory.capacity))?;
        bytes.put(usize::try_from(capacity).unwrap_or(usize::MAX))
    })
}

/// True for any two devices. Not checked again when a kernel accesses a peer.
#[unsafe(no_mangle)]
extern "C" fn cuDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) -> Status {
    answer(|| {
        exists(device)?;
        exists(peer)?;
        can.put(c_int::from(device != peer))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetAttribute(value: Out<c_int>, attribute: c_uint, device: c_int) -> Status {
    answer(|| {
        exists(device)?;
        let lacks = with(|driver| Ok(driver.lacks))?;
        value.put(attribute_of(attribute, device, lacks)?)
    })
}

fn exists(ordinal: c_int) -> Outcome {
    with(|driver| driver.device(ordinal).map(|_| ()))
}

fn attribute_of(attribute: c_uint, device: c_int, lacks: Lacks) -> Outcome<c_int> {
    Ok(match attribute {
        83 | 89 if lacks.managed => 0,
        115 if lacks.pools => 0,
        1..=3 => 1024,          // threads per block; block x, y
        4 => 64,                // block z
        5 => 0x7fff_ffff,       // grid x
        6 | 7 => 65_535,        // grid y, z
        8 => 48 << 10,          // shared memory per block
        9 => 64 << 10,          // constant memory
        10 => 32,               // warp size
        11 => 0x7fff_ffff,      // pitch
        12 | 82 => 64 << 10,    // registers per block, per multiprocessor
        13 => 1_980_000,        // clock rate in kHz
        14 | 30 => 512,         // texture and surface alignment
        15 => 1,                // copies beside kernels
        16 => 132,              // multiprocessors
        19 | 31 | 32 => 1,      // maps host memory; concurrent kernels; ECC
        33 => device + 1,       // PCI bus
        36 => 3_201_000,        // memory clock in kHz
        37 => 6144,             // bus width in bits
        38 => 60 << 20,         // L2
        39 => 2048,             // threads per multiprocessor
        40 => 3,                // copy engines
        41 => 1,                // unified addressing
        51 => 32,               // texture pitch alignment
        75 => 9,                // compute capability
        78..=80 => 1,           // stream priorities; L1 caches
        81 | 97 => 227 << 10,   // shared memory per multiprocessor, at most per block
        83 => 1,                // managed memory
        87 => 2,                // f32 over f64
        89 | 90 | 91 | 99 => 1, // managed beside kernels; preemption; registered memory
        106 => 32,              // blocks per multiprocessor
        111 => 1024,            // shared memory kept by the system
        115 => 1,               // memory pools
        17..=LAST_ATTRIBUTE => 0,
        _ => return Err(Status::INVALID_VALUE),
    })
}
