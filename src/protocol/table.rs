//! The doors: their names, what to look for in an object, and the order in which they are tried.

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

/// The doors that say most come first, then the protocols of arrays: the cheapest first, and memory
/// of the host before that of a device.
pub(super) static HOST_ORDER: [&Door; 12] = [
    &STORAGE,
    &XARRAY,
    &GT_INTERFACE,
    &NDARRAY,
    &ARROW_ITSELF,
    &EXCHANGE,
    &BUFFER,
    &DLPACK,
    &ARRAY_INTERFACE,
    &ARRAY_STRUCT,
    &CUDA_ARRAY_INTERFACE,
    &ARROW,
];

/// An object with memory on both sides shows that of the device first. DLPack counts more than the
/// CUDA array interface, which need not name a stream.
static DEVICE_ORDER: [&Door; 13] = [
    &STORAGE,
    &XARRAY,
    &GT_INTERFACE,
    &NDARRAY,
    &ARROW_ITSELF,
    &EXCHANGE,
    &DLPACK_OF_CUDA,
    &CUDA_ARRAY_INTERFACE,
    &BUFFER,
    &DLPACK,
    &ARRAY_INTERFACE,
    &ARRAY_STRUCT,
    &ARROW,
];

/// The first doors of both orders, which no known class of arrays speaks.
const FOR_OTHER_CLASSES: usize = 5;

/// As above, with the door of exchange tables, which NumPy's arrays do not have.
const BEFORE_BUFFER: usize = 6;

/// The doors for a request, in the order in which they are tried. An object of exactly a known class
/// of arrays speaks nothing but the protocols of arrays.
pub(super) fn doors(request: Request, known: Recognised) -> &'static [&'static Door] {
    if known.is_exactly(Producer::Numpy) {
        return HOST_ORDER.get(BEFORE_BUFFER..).unwrap_or_default();
    }
    let order: &[&Door] =
        if matches!(request.reach, Reach::Gpu(_)) { &DEVICE_ORDER } else { &HOST_ORDER };
    if known.is_array() { order.get(FOR_OTHER_CLASSES..).unwrap_or_default() } else { order }
}
