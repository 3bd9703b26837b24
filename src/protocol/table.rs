//! The doors: their names, what to look for in an object, and the order in which they are tried.
//!
//! The exchange table costs one function call. A buffer is the cheapest door of NumPy, JAX and others,
//! says what is read-only, and keeps its owner from resizing; an object that refuses its buffer, such as
//! bfloat16 in JAX, is asked by DLPack next. Arrow is last, since every other protocol of an array says
//! more: the device, the shape, what may be written.

#[cfg(feature = "arrow")]
use super::arrow;
use super::dlpack::exchange;
use super::door::{Door, Reach, Request};
use super::producer::{Producer, Recognised};
use super::{
    array_interface, array_struct, buffer, cuda_array_interface, dlpack, gt4py, storage, xarray,
};

static STORAGE: Door = Door { name: "storage", attributes: &[], import: storage::import };
static XARRAY: Door = Door { name: "xarray", attributes: &[], import: xarray::import };
static GT_INTERFACE: Door = Door {
    name: "gt_data_interface",
    attributes: &["__gt_data_interface__", "__gt_interface__"],
    import: gt4py::import,
};
static NDARRAY: Door =
    Door { name: "ndarray", attributes: &["ndarray"], import: gt4py::import_ndarray };
static EXCHANGE: Door =
    Door { name: "dlpack_c_exchange_api", attributes: &[], import: exchange::import };
static BUFFER: Door = Door { name: "buffer", attributes: &[], import: buffer::import };
static DLPACK: Door = Door { name: "dlpack", attributes: &["__dlpack__"], import: dlpack::import };
/// DLPack of an object whose memory is on a CUDA device.
static DLPACK_OF_CUDA: Door = Door { import: dlpack::import_from_cuda, ..DLPACK };
static ARRAY_INTERFACE: Door = Door {
    name: "array_interface",
    attributes: &["__array_interface__"],
    import: array_interface::import,
};
static ARRAY_STRUCT: Door =
    Door { name: "array_struct", attributes: &["__array_struct__"], import: array_struct::import };
static CUDA_ARRAY_INTERFACE: Door = Door {
    name: "cuda_array_interface",
    attributes: &["__cuda_array_interface__"],
    import: cuda_array_interface::import,
};
#[cfg(feature = "arrow")]
static ARROW: Door = Door {
    name: "arrow",
    attributes: &["__arrow_c_device_array__", "__arrow_c_array__", "__arrow_c_stream__"],
    import: arrow::import,
};
#[cfg(not(feature = "arrow"))]
static ARROW: Door = Door { name: "arrow", attributes: &[], import: |_, _, _| Ok(None) };
/// Arrow's own arrays say more through Arrow; of other arrays that speak it the other protocols know
/// more devices.
static ARROW_ITSELF: Door = Door {
    import: |obj, request, known| match known.producer {
        Producer::Arrow => (ARROW.import)(obj, request, known),
        _ => Ok(None),
    },
    ..ARROW
};

/// The doors that say most are tried first. No known class of arrays speaks them.
static SAY_MOST: [&Door; 5] = [&STORAGE, &XARRAY, &GT_INTERFACE, &NDARRAY, &ARROW_ITSELF];

/// The protocols of arrays: the cheapest first, and memory of the host before that of a device.
static HOST_ORDER: [&Door; 7] =
    [&EXCHANGE, &BUFFER, &DLPACK, &ARRAY_INTERFACE, &ARRAY_STRUCT, &CUDA_ARRAY_INTERFACE, &ARROW];

/// An object with memory on both sides shows that of the device first. DLPack counts more than the
/// CUDA array interface, which need not name a stream.
static DEVICE_ORDER: [&Door; 8] = [
    &EXCHANGE,
    &DLPACK_OF_CUDA,
    &CUDA_ARRAY_INTERFACE,
    &BUFFER,
    &DLPACK,
    &ARRAY_INTERFACE,
    &ARRAY_STRUCT,
    &ARROW,
];

/// All doors, each once, in the order for the host.
pub(super) fn all() -> impl Iterator<Item = &'static Door> {
    let [own @ .., _arrow_itself] = &SAY_MOST;
    own.iter().chain(&HOST_ORDER).copied()
}

/// The doors for a request, in the order in which they are tried. An object of exactly a known class
/// of arrays speaks nothing but the protocols of arrays, and NumPy's own has no exchange table.
pub(super) fn doors(request: Request, known: Recognised) -> impl Iterator<Item = &'static Door> {
    let [_exchange, rest @ ..] = &HOST_ORDER;
    let order: &[&Door] = match request.reach {
        _ if known.is_exactly(Producer::Numpy) => rest,
        Reach::Gpu(_) => &DEVICE_ORDER,
        Reach::Anywhere | Reach::Host => &HOST_ORDER,
    };
    let first: &[&Door] = if known.is_array() { &[] } else { &SAY_MOST };
    first.iter().chain(order).copied()
}
