//! Shape, strides and address of a field as `ndarray` wants them.

use ndarray::{ArrayView, ArrayViewMut, Axis, Dimension, IxDyn, ShapeBuilder, StrideShape};
use smallvec::SmallVec;

use crate::element::Element;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::managed::Managed;

/// What `ndarray` is told of memory: it takes no strides below 0 for a pointer, so that axes that run backwards are
/// turned round first, and their numbers kept.
struct Parts<T> {
    first: *mut T,
    shape: StrideShape<IxDyn>,
    backwards: SmallVec<[Axis; 4]>,
}

impl<T: Element> Parts<T> {
    fn of(memory: &Managed) -> Result<Self> {
        check(memory, T::DTYPE)?;
        let layout = memory.layout();
        let empty = layout.size() == 0;
        let (mut first, mut backwards) = (memory.data(), SmallVec::new());
        let mut strides = SmallVec::<[usize; 6]>::new();
        for (axis, (extent, stride)) in layout.axes().enumerate() {
            let moves = extent > 1 && !empty;
            if stride < 0 && moves {
                let bytes = size_of::<T>().cast_signed() * isize::try_from(stride).unwrap_or(0);
                let steps = isize::try_from(extent).unwrap_or(1) - 1;
                first = first.wrapping_byte_offset(bytes * steps);
                backwards.push(Axis(axis));
            }
            strides.push(usize::try_from(if moves { stride.abs() } else { 0 }).unwrap_or(0));
        }
        let extents = layout.shape().iter().map(|&extent| usize::try_from(extent).unwrap_or(0));
        let extents: SmallVec<[usize; 6]> = extents.collect();
        let first = if empty { std::ptr::NonNull::dangling().as_ptr() } else { first.cast() };
        let shape = IxDyn(&extents);
        let shape = if empty { shape.into() } else { shape.strides(IxDyn(&strides)) };
        Ok(Self { first, shape, backwards })
    }
}

/// A view for reading, for as long as the caller says.
///
/// # Errors
/// [`Error::Argument`] for another type or number of dimensions, [`Error::Buffer`] for elements off their
/// boundaries.
///
/// # Safety
/// The memory is there and nobody writes it as long as `'a` lasts.
pub(super) unsafe fn for_reading<'a, T: Element, D: Dimension>(
    memory: &Managed,
) -> Result<ArrayView<'a, T, D>> {
    let Parts { first, shape, backwards } = Parts::<T>::of(memory)?;
    // SAFETY: a Managed has an element for every index, inside memory that is there (its type) and of this type
    // and aligned (check); it does not change (the caller).
    let mut array = unsafe { ArrayView::from_shape_ptr(shape, first) };
    for axis in backwards {
        array.invert_axis(axis);
    }
    array.into_dimensionality().map_err(|_| other_ndim::<D>(memory))
}

/// A view for writing.
///
/// # Errors
/// As [`for_reading`].
///
/// # Safety
/// The memory is there, may be written, has one element for each index, and nobody else has it as long as `'a`
/// lasts.
pub(super) unsafe fn for_writing<'a, T: Element, D: Dimension>(
    memory: &Managed,
) -> Result<ArrayViewMut<'a, T, D>> {
    check_nested(memory.layout())?;
    let Parts { first, shape, backwards } = Parts::<T>::of(memory)?;
    // SAFETY: as above, and nobody else has it (the caller).
    let mut array = unsafe { ArrayViewMut::from_shape_ptr(shape, first) };
    for axis in backwards {
        array.invert_axis(axis);
    }
    array.into_dimensionality().map_err(|_| other_ndim::<D>(memory))
}

/// Refuses axes of which none goes on where the others end: their elements are apart all the same, but `ndarray`
/// cannot tell.
fn check_nested(layout: &Layout) -> Result<()> {
    let axes = layout.axes().filter(|(extent, _)| *extent > 1);
    let mut axes: SmallVec<[(u64, u64); 6]> =
        axes.map(|(extent, stride)| (stride.unsigned_abs(), extent.unsigned_abs())).collect();
    axes.sort_unstable();
    let mut last = 0_u64;
    for (stride, extent) in axes {
        if layout.size() > 0 && stride <= last {
            return Err(Error::Buffer(format!(
                "field: expected axes of which each goes on where the smaller ones end, got shape {:?} with strides of \
                 {:?} elements; take a copy",
                layout.shape(),
                layout.strides()
            )));
        }
        last = last.saturating_add(stride.saturating_mul(extent.saturating_sub(1)));
    }
    Ok(())
}

fn check(memory: &Managed, wanted: crate::dtype::DType) -> Result<()> {
    memory.check_on_host()?;
    if memory.dtype() != wanted {
        return Err(Error::Argument(format!(
            "field: expected elements of {wanted}, got {}; convert the values first",
            memory.dtype()
        )));
    }
    if !memory.is_aligned() {
        return Err(Error::Buffer(format!(
            "field: expected elements on boundaries of {} bytes, got address {:#x}; take a copy",
            memory.dtype().alignment(),
            memory.address()
        )));
    }
    Ok(())
}

fn other_ndim<D: Dimension>(memory: &Managed) -> Error {
    let wanted = D::NDIM.unwrap_or_default();
    Error::Argument(format!(
        "field: expected {wanted} dimensions, got shape {:?}; ask for Ix{}, or IxDyn for any number",
        memory.layout().shape(),
        memory.layout().ndim()
    ))
}
