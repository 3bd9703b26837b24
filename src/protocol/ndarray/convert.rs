//! Converts shape, strides and address of a field for `ndarray`.

use ndarray::{
    ArrayBase, ArrayView, ArrayViewMut, Axis, Dimension, IxDyn, RawData, ShapeBuilder, StrideShape,
};
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::managed::Managed;

/// Makes a view for reading.
///
/// # Errors
/// [`Error::Argument`] for another type or number of dimensions, [`Error::Buffer`] for misaligned
/// elements, [`Error::Device`] for memory of a GPU.
///
/// # Safety
/// The memory stays valid, and nothing writes it, during `'a`.
pub(super) unsafe fn for_reading<'a, T: Element, D: Dimension>(
    memory: &Managed,
) -> Result<ArrayView<'a, T, D>> {
    // SAFETY: a Managed has an element for every index. They are valid memory, of this type and
    // aligned (check), and do not change (the caller).
    view(memory, |shape, first| unsafe { ArrayView::from_shape_ptr(shape, first) })
}

/// Makes a view for writing.
///
/// # Errors
/// As [`for_reading`]; [`Error::Buffer`] for interleaved axes.
///
/// # Safety
/// The memory is writable and has one index per element. It stays valid, and nothing else uses it,
/// during `'a`.
pub(super) unsafe fn for_writing<'a, T: Element, D: Dimension>(
    memory: &Managed,
) -> Result<ArrayViewMut<'a, T, D>> {
    check_nested(memory.layout())?;
    // SAFETY: as for reading. No axes interleave (check_nested); the caller guarantees one index for
    // each element, and exclusive, writable memory.
    view(memory, |shape, first| unsafe { ArrayViewMut::from_shape_ptr(shape, first) })
}

/// Makes a view. `ndarray` accepts no negative strides for a pointer, so reversed axes are turned
/// forward first, and inverted again in the view.
fn view<T: Element, S: RawData<Elem = T>, D: Dimension>(
    memory: &Managed,
    make: impl FnOnce(StrideShape<IxDyn>, *mut T) -> ArrayBase<S, IxDyn>,
) -> Result<ArrayBase<S, D>> {
    check(memory, T::DTYPE)?;
    let layout = memory.layout();
    let empty = layout.size() == 0;
    let (mut first, mut reversed) = (memory.data(), SmallVec::<[Axis; 4]>::new());
    let mut strides = SmallVec::<[usize; 6]>::new();
    for (axis, (extent, stride)) in layout.axes().enumerate() {
        let moves = extent > 1 && !empty;
        if stride < 0 && moves {
            let bytes = size_of::<T>().cast_signed() * isize::try_from(stride).unwrap_or(0);
            let steps = isize::try_from(extent).unwrap_or(1) - 1;
            first = first.wrapping_byte_offset(bytes * steps);
            reversed.push(Axis(axis));
        }
        strides.push(usize::try_from(if moves { stride.abs() } else { 0 }).unwrap_or(0));
    }
    let extents = layout.shape().iter().map(|&extent| usize::try_from(extent).unwrap_or(0));
    let extents: SmallVec<[usize; 6]> = extents.collect();
    let first = if empty { std::ptr::NonNull::dangling().as_ptr() } else { first.cast() };
    let shape = IxDyn(&extents);
    let shape = if empty { shape.into() } else { shape.strides(IxDyn(&strides)) };
    let mut array = make(shape, first);
    for axis in reversed {
        array.invert_axis(axis);
    }
    array.into_dimensionality().map_err(|_| wrong_ndim::<D>(memory))
}

/// Refuses interleaved axes: their elements may be distinct, but `ndarray` cannot tell.
fn check_nested(layout: &Layout) -> Result<()> {
    if layout.size() == 0 || layout.is_nested() {
        return Ok(());
    }
    Err(Error::Buffer(format!(
        "field: expected axes that do not interleave, got shape {:?} with strides of {:?} \
         elements; copy it first",
        layout.shape(),
        layout.strides()
    )))
}

fn check(memory: &Managed, dtype: DType) -> Result<()> {
    memory.device().check_on_host()?;
    if memory.dtype() != dtype {
        return Err(Error::Argument(format!(
            "field: expected elements of {dtype}, got {}; convert the values first",
            memory.dtype()
        )));
    }
    if !memory.is_aligned() {
        return Err(Error::Buffer(format!(
            "field: expected elements on boundaries of {} bytes, got address {:#x}; copy it first",
            memory.dtype().alignment(),
            memory.address()
        )));
    }
    Ok(())
}

fn wrong_ndim<D: Dimension>(memory: &Managed) -> Error {
    let wanted = D::NDIM.unwrap_or_default();
    Error::Argument(format!(
        "field: expected {wanted} dimensions, got shape {:?}; ask for Ix{}, or IxDyn for any",
        memory.layout().shape(),
        memory.layout().ndim()
    ))
}
