//! A call of XLA's, read from its frame: buffers that are checked as those of every producer, and the
//! name of the entry.

use std::slice;
use std::sync::Arc;

use super::abi::{Attributes, Buffer, Buffers, ByteSpan, CallFrame, STRING};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::MAX_NDIM;
use crate::managed::{Checked, Described, Managed, Owner};

/// The name of the attribute that names an entry.
const ENTRY: &[u8] = b"entry";

/// Types of elements: XLA's code, and ours.
const DTYPES: [(u32, DType); 15] = [
    (1, DType::Bool),
    (2, DType::Int8),
    (3, DType::Int16),
    (4, DType::Int32),
    (5, DType::Int64),
    (6, DType::UInt8),
    (7, DType::UInt16),
    (8, DType::UInt32),
    (9, DType::UInt64),
    (10, DType::Float16),
    (11, DType::Float32),
    (12, DType::Float64),
    (15, DType::Complex64),
    (16, DType::BFloat16),
    (18, DType::Complex128),
];

/// The code of what orders calls, and has no elements.
const TOKEN: u32 = 17;

/// The loan of XLA's memory: every array over it has a part in this.
#[derive(Default)]
pub(super) struct Lent(Arc<()>);

impl Lent {
    /// Counts one more array. It frees nothing: the memory is XLA's.
    fn owner(&self) -> Owner {
        Owner::from(Arc::clone(&self.0))
    }

    /// True while an array over the memory exists.
    pub(super) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

/// A call: XLA keeps its frame and memory until the handler returns.
pub(super) struct Frame<'a>(&'a CallFrame);

impl<'a> Frame<'a> {
    /// # Errors
    /// [`Error::Buffer`] for a frame that is smaller than the one of version 0.1.
    pub(super) fn read(frame: &'a CallFrame) -> Result<Self> {
        check_size::<CallFrame>("call frame", frame.size).map(|()| Self(frame))
    }

    /// The text of the attribute that names the entry.
    pub(super) fn entry(&self) -> Result<&'a str> {
        let Attributes { count, kinds, names, each, .. } = &self.0.attributes;
        let none = || Error::Buffer("XLA call: needs the attribute 'entry'".into());
        for at in 0..usize::try_from(*count).unwrap_or(0) {
            // SAFETY: XLA's array of kinds has `count` entries (c_api.h).
            let kind = unsafe { entry_of(*kinds, at) };
            // SAFETY: as above.
            let name = unsafe { entry_of(*names, at) };
            // SAFETY: a live object of XLA's, as all that a frame points to.
            let name = unsafe { &*name };
            if kind == STRING && bytes(name) == ENTRY {
                // SAFETY: as above.
                let text = unsafe { entry_of(*each, at) }.cast::<ByteSpan>();
                // SAFETY: an attribute of this kind is a span of bytes, which lives as the frame.
                let text = bytes(unsafe { &*text });
                return std::str::from_utf8(text).map_err(|_| none());
            }
        }
        Err(none())
    }

    /// The inputs; read-only, since XLA's values never change.
    pub(super) fn inputs(&self, lent: &Lent) -> Result<Vec<Managed>> {
        self.managed(&self.0.arguments, lent, true)
    }

    pub(super) fn outputs(&self, lent: &Lent) -> Result<Vec<Managed>> {
        self.managed(&self.0.results, lent, false)
    }

    /// The memory of all buffers but tokens.
    fn managed(&self, of: &Buffers, lent: &Lent, readonly: bool) -> Result<Vec<Managed>> {
        let managed = |at| {
            // SAFETY: XLA's array has `count` entries (c_api.h).
            let buffer = unsafe { entry_of(of.each, at) };
            // SAFETY: a live buffer of XLA's, as all that a frame points to.
            let buffer = unsafe { &*buffer };
            managed(buffer, lent.owner(), readonly).transpose()
        };
        (0..usize::try_from(of.count).unwrap_or(0)).filter_map(managed).collect()
    }
}

/// The memory of a buffer, in C order; `None` for a token.
fn managed(buffer: &Buffer, owner: Owner, readonly: bool) -> Result<Option<Managed>> {
    check_size::<Buffer>("buffer", buffer.size)?;
    if buffer.dtype == TOKEN {
        return Ok(None);
    }
    let code = buffer.dtype;
    let known = DTYPES.iter().find(|known| known.0 == code);
    let Some(&(_, dtype)) = known else {
        return Err(Error::Buffer(format!("XLA buffer: expected a known type, got code {code}")));
    };
    let rank = usize::try_from(buffer.rank).ok().filter(|rank| *rank <= MAX_NDIM);
    let Some(rank) = rank else {
        let text = format!("XLA buffer: expected up to {MAX_NDIM} dims, got {}", buffer.rank);
        return Err(Error::Buffer(text));
    };
    let shape = match rank {
        0 => &[][..],
        // SAFETY: `dims` has `rank` entries (c_api.h).
        _ => unsafe { slice::from_raw_parts(buffer.dims, rank) },
    };
    let described = Described {
        address: buffer.data.expose_provenance(),
        shape,
        byte_strides: None,
        dtype,
        device: Device::CPU,
        readonly,
        owner,
    };
    // SAFETY: XLA keeps the memory until the handler returns. An array that is kept longer dangles: the
    // handler counts them by `Lent`, and fails the call.
    let checked = unsafe { Checked::from_described(described) }?;
    Ok(Some(checked.into_managed(false)?))
}

/// Refuses a struct of XLA's that is smaller than the part of it that is read.
fn check_size<T>(what: &str, got: usize) -> Result<()> {
    let least = size_of::<T>();
    match got >= least {
        true => Ok(()),
        false => Err(Error::Buffer(format!(
            "XLA {what}: expected at least {least} bytes, got {got}; install a jaxlib that serves \
             version 0.1 of its foreign functions"
        ))),
    }
}

/// Reads an entry of an array of XLA's.
///
/// # Safety
/// The array has more than `at` entries.
unsafe fn entry_of<T: Copy>(array: *const T, at: usize) -> T {
    // SAFETY: the caller guarantees that the array is long enough.
    let place = unsafe { array.add(at) };
    // SAFETY: as above; XLA has written all entries.
    unsafe { place.read() }
}

fn bytes(span: &ByteSpan) -> &[u8] {
    match span.length {
        0 => &[],
        // SAFETY: `start` has `length` bytes (c_api.h).
        length => unsafe { slice::from_raw_parts(span.start.cast(), length) },
    }
}
