//! What a door brings in: the claims of a producer, and the checks that turn them into facts.

use std::fmt;
#[cfg(feature = "python")]
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned, DLTensor};
use smallvec::SmallVec;

use super::foreign::Foreign;
use super::{Managed, Owner, on_device};
use crate::cuda::{Stream, device_count};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Extents, Layout, MAX_NDIM};

/// An unchecked tensor. Dropping it releases the producer's memory.
#[must_use = "dropping an import releases the producer's memory"]
pub struct Imported {
    claim: Claim,
    immutable: bool,
    /// Handle of the CUDA stream on which the producer works.
    stream: Option<usize>,
    /// What it says of a device is taken as it is where no driver knows.
    believed: bool,
    /// A stream that comes after what the producer has in flight.
    after: Option<Stream>,
    /// Whether the driver has told where the memory is.
    located: bool,
    /// What `check` found, so that it is found once.
    facts: Option<Result<Facts>>,
}

/// Claims that hold.
struct Facts {
    data: *mut u8,
    layout: Layout,
    dtype: DType,
    device: Device,
    readonly: bool,
}

enum Claim {
    Dlpack(Foreign),
    /// Of a description, which is checked as it comes, what is left of it.
    Described(Owner),
}

/// The claims of a protocol that has no struct of its own: buffer protocol, array interface.
#[expect(missing_debug_implementations, reason = "an owner cannot be shown")]
pub struct Described<'a> {
    /// Address of the first element.
    pub address: usize,
    /// Extents, in elements.
    pub shape: &'a [i64],
    /// Strides, in bytes; `None` is C order.
    pub byte_strides: Option<&'a [i64]>,
    /// Type of an element.
    pub dtype: DType,
    /// Where the memory lives.
    pub device: Device,
    /// Whether the producer forbids writing.
    pub readonly: bool,
    /// Keeps the memory alive.
    pub owner: Owner,
}

impl Imported {
    /// Takes ownership of a versioned DLPack tensor and reads nothing of it.
    ///
    /// # Safety
    /// `managed` points to a `DLManagedTensorVersioned` (of any version) that the caller owns,
    /// whose deleter may be called once from any thread. Where the major version is 1, shape and
    /// strides point to `ndim` numbers, or are caught by the checks of [`Imported::validate`], and
    /// the elements stay valid until the deleter is called.
    pub unsafe fn from_versioned(managed: NonNull<DLManagedTensorVersioned>) -> Self {
        Self::of(Claim::Dlpack(Foreign::Versioned(managed)), None)
    }

    /// Takes ownership of a legacy DLPack tensor and reads nothing of it.
    ///
    /// # Safety
    /// As [`Imported::from_versioned`], for a `DLManagedTensor`.
    pub unsafe fn from_legacy(managed: NonNull<DLManagedTensor>) -> Self {
        Self::of(Claim::Dlpack(Foreign::Legacy(managed)), None)
    }

    /// Takes claims that come without a struct.
    ///
    /// # Safety
    /// Where the claims pass [`Imported::validate`], every byte of the span they describe stays
    /// valid, reachable as `device` says, until `owner` is dropped.
    pub unsafe fn from_described(described: Described<'_>) -> Self {
        let facts = facts_of_described(&described).and_then(checked_addresses);
        Self::of(Claim::Described(described.owner), Some(facts))
    }

    fn of(claim: Claim, facts: Option<Result<Facts>>) -> Self {
        Self {
            claim,
            immutable: false,
            stream: None,
            believed: false,
            after: None,
            located: false,
            facts,
        }
    }

    /// Notes that the producer's arrays never change, whatever the protocol says.
    pub fn set_immutable(&mut self, immutable: bool) {
        self.immutable |= immutable;
    }

    /// Lets memory of a device pass where there is no CUDA driver to ask about it: a stencil of a GPU
    /// of another make takes it.
    #[cfg(feature = "python")]
    pub(crate) fn set_believed(&mut self, believed: bool) {
        self.believed = believed;
    }

    /// Notes the stream on which the producer may be working on memory of a CUDA device.
    ///
    /// # Safety
    /// `handle` is a stream, for as long as the owner of the memory lives.
    #[cfg(feature = "python")]
    pub(crate) unsafe fn on_stream(self, handle: Option<usize>) -> Self {
        Self { stream: handle, ..self }
    }

    /// Notes a stream that the producer has made wait for what it has in flight.
    #[cfg(feature = "python")]
    pub(crate) fn after_work_on(self, stream: Stream) -> Self {
        Self { after: Some(stream), ..self }
    }

    /// Asks the driver which device has the memory, where a CUDA device is to have it. As [`Imported::check`]
    /// it can be left to whoever owned it before.
    ///
    /// # Errors
    /// As [`Imported::check`]; [`Error::Device`] without a usable driver, [`Error::Buffer`] where it knows
    /// another kind of memory, or none, behind the address.
    pub fn locate(&mut self) -> Result<()> {
        let (believed, located) = (self.believed, self.located);
        let facts = self.checked()?;
        if !located {
            match on_device::found(facts.data.addr(), &facts.layout, facts.device) {
                Err(_) if believed && device_count().is_err() => {}
                found => facts.device = found?,
            }
            self.located = true;
        }
        Ok(())
    }

    /// Checks every claim and touches nothing else: an import that fails here can be left to
    /// whoever owned it before.
    ///
    /// # Errors
    /// [`Error::Buffer`] that names the first claim that cannot hold.
    pub fn check(&mut self) -> Result<()> {
        self.checked().map(|_| ())
    }

    fn checked(&mut self) -> Result<&mut Facts> {
        let claim = &self.claim;
        let facts = self.facts.get_or_insert_with(|| match claim {
            Claim::Dlpack(foreign) => facts_of_dlpack(foreign).and_then(checked_addresses),
            Claim::Described(_) => Err(unchecked()),
        });
        facts.as_mut().map_err(|error| error.clone())
    }

    /// Leaves the tensor to whoever owned it before: nothing is released.
    #[cfg(feature = "python")]
    pub(crate) fn leave(self) {
        let Self { claim, .. } = self;
        let _ = ManuallyDrop::new(claim);
    }

    /// Where the memory lives, once every claim holds.
    ///
    /// # Errors
    /// As [`Imported::check`].
    pub fn device(&mut self) -> Result<Device> {
        self.checked().map(|facts| facts.device)
    }

    /// Checks every claim and takes the memory on trust from here on.
    ///
    /// Memory in which several indices name one element is read-only from here on: who writes one
    /// element of a broadcast writes others.
    ///
    /// # Errors
    /// As [`Imported::locate`]. The producer's memory has been released then.
    pub fn validate(mut self) -> Result<Managed> {
        self.locate()?;
        let Self { claim, immutable, stream, after, facts, .. } = self;
        let Facts { data, layout, dtype, device, readonly } =
            facts.unwrap_or_else(|| Err(unchecked()))?;
        let in_order = matches!(claim, Claim::Described(_));
        let owner: Owner = match claim {
            Claim::Dlpack(foreign) => Arc::new(foreign),
            Claim::Described(owner) => owner,
        };
        let readonly = readonly || immutable || layout.overlaps_itself();
        let managed = Managed { data, layout, dtype, device, readonly, owner, timeline: None };
        if device == Device::CPU {
            return Ok(managed); // nothing is in flight there
        }
        // SAFETY: on_stream demands that the stream lives as long as the owner.
        unsafe { on_device::followed(managed, stream, after, in_order) }
    }
}

impl fmt::Debug for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Imported(unchecked)")
    }
}

fn facts_of_dlpack(foreign: &Foreign) -> Result<Facts> {
    let claim = foreign.claim()?;
    let tensor = &claim.tensor;
    let ndim = checked_ndim(tensor.ndim)?;
    let dtype = DType::from_dlpack(tensor.dtype.code.0, tensor.dtype.bits, tensor.dtype.lanes)?;
    let device = read_device(tensor)?;
    let shape = read_shape(tensor, ndim)?;
    let layout = match read_numbers("strides", tensor.strides, ndim)? {
        Some(strides) => Layout::new(shape, strides, dtype.itemsize())?,
        None => Layout::compact(shape, dtype.itemsize())?, // in every version (dlpack.h before 1.2)
    };
    let address = offset_address(tensor, &layout)?;
    let data = tensor.data.cast::<u8>().with_addr(address);
    Ok(Facts { data, layout, dtype, device, readonly: claim.readonly })
}

/// Shape, type and device of a tensor that somebody wants to have allocated. The rest of it means
/// nothing (dlpack.h, `DLPackManagedTensorAllocator`).
///
/// # Errors
/// [`Error::Buffer`] that names the first claim that cannot hold.
#[cfg(feature = "python")]
pub(crate) fn read_prototype(tensor: &DLTensor) -> Result<(Extents, DType, Device)> {
    let ndim = checked_ndim(tensor.ndim)?;
    let dtype = DType::from_dlpack(tensor.dtype.code.0, tensor.dtype.bits, tensor.dtype.lanes)?;
    Ok((read_shape(tensor, ndim)?, dtype, read_device(tensor)?))
}

fn checked_ndim(ndim: i32) -> Result<usize> {
    usize::try_from(ndim).ok().filter(|&ndim| ndim <= MAX_NDIM).ok_or_else(|| {
        Error::Buffer(format!("DLPack ndim: expected 0 to {MAX_NDIM} dimensions, got {ndim}"))
    })
}

fn read_device(tensor: &DLTensor) -> Result<Device> {
    // An enum in dlpack.h: a signed int.
    let device_type = i64::from(tensor.device.device_type.0.cast_signed());
    Device::from_dlpack(device_type, tensor.device.device_id)
}

fn read_shape(tensor: &DLTensor, ndim: usize) -> Result<Extents> {
    read_numbers("shape", tensor.shape, ndim)?.ok_or_else(|| {
        Error::Buffer(format!("DLPack shape: expected a pointer to {ndim} extents, got NULL"))
    })
}

/// Copies `ndim` numbers, so that nobody can change them after they were checked. `None`: NULL.
fn read_numbers(what: &str, from: *mut i64, ndim: usize) -> Result<Option<Extents>> {
    if ndim == 0 {
        return Ok(Some(SmallVec::new())); // may point anywhere
    }
    if from.is_null() {
        return Ok(None);
    }
    if !from.is_aligned() {
        return Err(Error::Buffer(format!(
            "DLPack {what}: expected a pointer aligned to {} bytes, got {from:p}",
            align_of::<i64>()
        )));
    }
    // SAFETY: not NULL, aligned, and ndim is at most MAX_NDIM (checked above); that it points to
    // ndim numbers is the producer's promise, which from_versioned and from_legacy demand.
    let numbers = unsafe { std::slice::from_raw_parts(from, ndim) };
    Ok(Some(Extents::from_slice(numbers)))
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

fn facts_of_described(described: &Described<'_>) -> Result<Facts> {
    let &Described { address, shape, byte_strides, dtype, device, readonly, .. } = described;
    let layout = match byte_strides {
        None => Layout::compact(Extents::from_slice(shape), dtype.itemsize())?,
        Some(strides) => Layout::of_byte_strides(shape, strides, dtype.itemsize())?,
    };
    let data = std::ptr::with_exposed_provenance_mut(address);
    Ok(Facts { data, layout, dtype, device, readonly })
}

fn unchecked() -> Error {
    Error::Buffer("import: expected checked claims, got none".into())
}

/// The last check: no element may lie at NULL or outside the address space.
fn checked_addresses(facts: Facts) -> Result<Facts> {
    let span = facts.layout.span();
    if span.is_empty() {
        return Ok(facts);
    }
    let address = facts.data.addr();
    let low = address.checked_add_signed(span.low);
    let inside =
        address != 0 && low.is_some_and(|low| low > 0 && low.checked_add(span.len()).is_some());
    if inside {
        return Ok(facts);
    }
    Err(Error::Buffer(format!(
        "data: expected an address with {} bytes below and {} bytes above it, got {address:#x}",
        span.low.unsigned_abs(),
        span.high
    )))
}
