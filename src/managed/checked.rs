//! The first step of trust: from claims to numbers that cannot lie about arithmetic.
//!
//! Every check of this file reads descriptors alone. The next step (`located`) asks if the memory
//! is where its producer says.

use dlpark::ffi::DLTensor;

use super::owner::Owner;
use super::untrusted::Untrusted;
use crate::cuda::Stream;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Extents, Layout, MAX_NDIM};

/// Claims that hold, about memory whose place the driver has not confirmed. Dropping them releases
/// the producer's memory.
#[must_use = "dropping claims releases the producer's memory"]
pub(crate) struct Checked {
    pub(super) facts: Facts,
    pub(super) source: Source,
    pub(super) in_flight: InFlight,
}

/// A checked description of an array, without its owner.
pub(super) struct Facts {
    pub(super) data: *mut u8,
    pub(super) layout: Layout,
    pub(super) dtype: DType,
    pub(super) device: Device,
    pub(super) readonly: bool,
}

/// The owner of the memory: a tensor that can be given back, or an object that describes itself.
pub(super) enum Source {
    Tensor(Untrusted),
    Object(Owner),
}

/// Work of the producer on memory of a device.
#[derive(Debug, Clone, Copy)]
pub(super) enum InFlight {
    Nothing,
    /// On the stream with this handle, now and later.
    On(usize),
    /// Before what is on this stream now.
    Before(Stream),
}

/// A refused tensor, and the reason. Converting it into an [`Error`], as `?` does, drops the tensor
/// and so releases it; its owner can take it back instead.
pub(crate) struct Refusal {
    pub(super) error: Error,
    pub(super) refused: Source,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        refusal.error
    }
}

impl Refusal {
    /// Leaves the tensor to its previous owner.
    pub(crate) fn give_back(self) -> Error {
        self.refused.give_back();
        self.error
    }
}

impl Source {
    fn give_back(self) {
        if let Self::Tensor(tensor) = self {
            tensor.leave();
        }
    }
}

/// The claims of a protocol that has no struct of its own: buffer protocol, array interface, Arrow.
pub(crate) struct Described<'a> {
    /// Address of the first element.
    pub(crate) address: usize,
    /// Extents, in elements.
    pub(crate) shape: &'a [i64],
    /// Strides, in bytes; `None` is C order.
    pub(crate) byte_strides: Option<&'a [i64]>,
    pub(crate) dtype: DType,
    pub(crate) device: Device,
    pub(crate) readonly: bool,
    pub(crate) owner: Owner,
}

impl Untrusted {
    /// Checks every claim and touches nothing else.
    ///
    /// # Errors
    /// [`Error::Buffer`] that names the first claim that cannot hold, with the tensor, which its
    /// owner may take back.
    pub(crate) fn check(self) -> Result<Checked, Refusal> {
        let facts = facts_of_tensor(&self);
        let source = Source::Tensor(self);
        match facts {
            Ok(facts) => Ok(Checked { facts, source, in_flight: InFlight::Nothing }),
            Err(error) => Err(Refusal { error, refused: source }),
        }
    }
}

impl Checked {
    /// Checks claims that come without a struct.
    ///
    /// # Errors
    /// [`Error::Buffer`] that names the first claim that cannot hold. The owner has been dropped.
    ///
    /// # Safety
    /// If the claims hold, every byte of the span they describe stays valid, reachable as `device`
    /// says, until `owner` is dropped.
    pub(crate) unsafe fn from_described(described: Described<'_>) -> Result<Self> {
        let Described { address, shape, byte_strides, dtype, device, readonly, owner } = described;
        let layout = match byte_strides {
            None => Layout::compact(Extents::from_slice(shape), dtype.itemsize())?,
            Some(strides) => Layout::from_byte_strides(shape, strides, dtype.itemsize())?,
        };
        let data = std::ptr::with_exposed_provenance_mut(address);
        check_address(address, &layout)?;
        let facts = Facts { data, layout, dtype, device, readonly };
        Ok(Self { facts, source: Source::Object(owner), in_flight: InFlight::Nothing })
    }

    /// Leaves a tensor to its previous owner: nothing is released.
    pub(crate) fn give_back(self) {
        self.source.give_back();
    }

    /// Extents, in elements.
    pub(crate) fn shape(&self) -> &[i64] {
        self.facts.layout.shape()
    }

    /// The device that has the memory, as the producer claims.
    pub(crate) fn device(&self) -> Device {
        self.facts.device
    }

    /// Forbids writing, whatever the protocol says: the producer's arrays never change.
    pub(crate) fn into_immutable(mut self) -> Self {
        self.facts.readonly = true;
        self
    }

    /// Notes the stream on which the producer may be working on memory of a CUDA device.
    ///
    /// # Safety
    /// `handle` is a stream for as long as the owner of the memory lives.
    pub(crate) unsafe fn on_stream(self, handle: Option<usize>) -> Self {
        Self { in_flight: handle.map_or(InFlight::Nothing, InFlight::On), ..self }
    }

    /// Notes a stream that the producer has made wait for what it has in flight.
    pub(crate) fn after_work_on(self, stream: Stream) -> Self {
        Self { in_flight: InFlight::Before(stream), ..self }
    }
}

fn facts_of_tensor(untrusted: &Untrusted) -> Result<Facts> {
    let (tensor, readonly) = untrusted.descriptor()?;
    let (shape, dtype, device) = read_prototype(&tensor)?;
    // SAFETY: from_versioned and from_legacy demand a pointer to ndim numbers, or one that is
    // caught here.
    let layout = match unsafe { read_numbers("DLPack strides", tensor.strides, shape.len()) }? {
        Some(strides) => Layout::from_numbers(shape, strides, dtype.itemsize())?,
        // In every version (dlpack.h before 1.2).
        None => Layout::compact(Extents::from_slice(shape), dtype.itemsize())?,
    };
    let address = offset_address(&tensor, &layout)?;
    check_address(address, &layout)?;
    let data = tensor.data.cast::<u8>().with_addr(address);
    Ok(Facts { data, layout, dtype, device, readonly })
}

/// Reads shape, type and device of a tensor to be allocated. The rest of the prototype means
/// nothing (dlpack.h, `DLPackManagedTensorAllocator`).
///
/// # Errors
/// [`Error::Buffer`] that names the first claim that cannot hold.
pub(crate) fn read_prototype(tensor: &DLTensor) -> Result<(&[i64], DType, Device)> {
    let ndim = check_ndim("DLPack", tensor.ndim)?;
    let dtype = DType::from_dlpack(tensor.dtype.code.0, tensor.dtype.bits, tensor.dtype.lanes)?;
    // An enum in dlpack.h: a signed int.
    let device_type = i64::from(tensor.device.device_type.0.cast_signed());
    let device = Device::from_dlpack(device_type, tensor.device.device_id)?;
    // SAFETY: a producer of a tensor, or of a prototype, promises a pointer to ndim numbers, or one
    // that is caught here.
    let shape = unsafe { read_numbers("DLPack shape", tensor.shape, ndim) }?.ok_or_else(|| {
        Error::Buffer(format!("DLPack shape: expected a pointer to {ndim} extents, got NULL"))
    })?;
    Ok((shape, dtype, device))
}

/// Checks the number of dimensions in a struct of C.
///
/// # Errors
/// [`Error::Buffer`].
pub(crate) fn check_ndim(what: &str, ndim: i32) -> Result<usize> {
    usize::try_from(ndim).ok().filter(|&ndim| ndim <= MAX_NDIM).ok_or_else(|| {
        Error::Buffer(format!("{what} ndim: expected 0 to {MAX_NDIM} dimensions, got {ndim}"))
    })
}

/// Reads the `ndim` numbers, at most `MAX_NDIM`, that a struct of C points to. `None` stands for
/// NULL.
///
/// # Errors
/// [`Error::Buffer`] for a misaligned pointer.
///
/// # Safety
/// A pointer that is neither NULL nor misaligned points to `ndim` numbers, which do not change
/// during `'a`.
pub(crate) unsafe fn read_numbers<'a>(
    what: &str,
    from: *const i64,
    ndim: usize,
) -> Result<Option<&'a [i64]>> {
    if ndim == 0 {
        return Ok(Some(&[])); // may point anywhere
    }
    if from.is_null() {
        return Ok(None);
    }
    if !from.is_aligned() {
        return Err(Error::Buffer(format!(
            "{what}: expected a pointer aligned to {} bytes, got {from:p}",
            align_of::<i64>()
        )));
    }
    // SAFETY: neither NULL nor misaligned, so the caller has ndim numbers there.
    Ok(Some(unsafe { std::slice::from_raw_parts(from, ndim) }))
}

fn offset_address(tensor: &DLTensor, layout: &Layout) -> Result<usize> {
    let base = tensor.data.addr();
    if layout.size() == 0 {
        return Ok(base); // never read
    }
    let offset = isize::try_from(tensor.byte_offset).ok();
    let address = offset.and_then(|offset| base.checked_add_signed(offset));
    address.filter(|_| base != 0).ok_or_else(|| {
        Error::Buffer(format!(
            "DLPack data: expected an address for {} elements, got {base:#x} with byte_offset {}",
            layout.size(),
            tensor.byte_offset
        ))
    })
}

/// The last check.
fn check_address(address: usize, layout: &Layout) -> Result<()> {
    if layout.lies_in_memory(address) {
        return Ok(());
    }
    let span = layout.span();
    Err(Error::Buffer(format!(
        "data: expected an address with {} bytes below and {} bytes above it, got {address:#x}",
        span.low.unsigned_abs(),
        span.high
    )))
}
