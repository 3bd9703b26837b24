//! The axes of an import, in the order of its metadata, and their labels.

use smallvec::SmallVec;

use super::metadata::{FieldMetadata, Tensor};
use super::names::{DLFIELD, EXTENSION_METADATA, EXTENSION_NAME, FIXED_SHAPE_TENSOR, placeholder};
use super::structs::ArrowSchema;
use crate::dtype::DType;
use crate::error::{Error, Result, shortened};
use crate::field::{Dim, Dims, Labels};
use crate::layout::{Extents, Layout, MAX_NDIM};

/// The axes of a field, in its own order.
pub(super) struct ImportedAxes {
    pub(super) layout: Layout,
    pub(super) labels: Labels,
}

impl ImportedAxes {
    /// Orders axes by the metadata. `shape` is in the order of memory.
    ///
    /// # Errors
    /// [`Error::Buffer`] if the metadata does not fit the shape.
    pub(super) fn read(schema: &ArrowSchema, mut shape: Extents, dtype: DType) -> Result<Self> {
        let [extension, parameters, whole] =
            schema.metadata([EXTENSION_NAME, EXTENSION_METADATA, DLFIELD])?;
        let (mut order, mut labels) = (SmallVec::<[usize; 4]>::from_slice(&[0]), Labels::default());
        if extension == Some(FIXED_SHAPE_TENSOR.as_bytes()) {
            let tensor = Tensor::from_json(parameters.unwrap_or_default())?;
            shape = list_of_tensors(&shape, &tensor)?;
            order.extend(tensor.permutation.iter().map(|axis| axis.saturating_add(1)));
            labels.dims = tensor.dims.map(|dims| with_list_axis(&dims, &tensor.permutation));
        } else {
            order.extend(1..shape.len());
        }
        let whole = whole.map(FieldMetadata::from_json).transpose()?;
        if let Some(axis) =
            whole.as_ref().map(|whole| whole.axis).filter(|axis| *axis < order.len())
        {
            order.remove(0);
            order.insert(axis, 0);
        }
        let layout = Layout::compact(shape.clone(), dtype.itemsize()).map_err(|_| {
            Error::Buffer(format!(
                "Arrow array: expected a shape that memory can have, got {:?}",
                shape.as_slice()
            ))
        })?;
        let mut layout = layout.permute(&order)?;
        if let Some(axes) = labels.dims.as_ref().filter(|_| whole.is_none()).and_then(numbered) {
            layout = layout.permute(&axes)?; // of a field without names
            labels.dims = None;
        }
        if let Some(whole) = whole {
            labels = restored(whole, layout.shape())?;
        }
        let unfit = |error| Error::Buffer(format!("Arrow metadata: {error}; remove the metadata"));
        labels.check(layout.shape()).map_err(unfit)?;
        Ok(Self { layout, labels })
    }
}

/// The labels of an exported field, of which `shape` may be a part.
fn restored(whole: FieldMetadata, shape: &[i64]) -> Result<Labels> {
    let FieldMetadata { shape: original, axis, dims, halo, origin } = whole;
    let differs = |(at, (one, other)): (usize, (&i64, &i64))| at != axis && one != other;
    if original.len() != shape.len() || original.iter().zip(shape).enumerate().any(differs) {
        return Err(Error::Buffer(format!(
            "metadata of dlfield: expected the shape of the array, {shape:?}, got {}; remove the \
             metadata",
            shortened(&format!("{original:?}"))
        )));
    }
    // A halo along the list, and the origin, are valid for the whole list only.
    let is_whole = original.as_slice() == shape;
    let at_the_ends = halo.as_ref().and_then(|halo| halo.get(axis)).copied();
    let halo = halo.filter(|_| is_whole || at_the_ends == Some((0, 0)));
    Ok(Labels { dims, halo: halo.into(), origin: origin.filter(|_| is_whole) })
}

/// Shape of a list of tensors, in the order of memory.
fn list_of_tensors(shape: &[i64], tensor: &Tensor) -> Result<Extents> {
    let size = tensor.shape.iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent));
    match shape {
        [length, items] if size == Some(*items) && tensor.shape.len() < MAX_NDIM => {
            Ok(std::iter::once(*length).chain(tensor.shape.iter().copied()).collect())
        }
        _ => Err(Error::Buffer(format!(
            "metadata of arrow.fixed_shape_tensor: expected a shape of the lists of {:?} elements, \
             got {}; the array is not valid",
            shape.get(1..).unwrap_or_default(),
            shortened(&format!("{:?}", tensor.shape.as_slice()))
        ))),
    }
}

/// The order that placeholders of unnamed axes give, if every name but that of the list is one.
fn numbered(dims: &Dims) -> Option<SmallVec<[usize; 4]>> {
    let inner = || dims.iter().enumerate().skip(1);
    let at = |axis| inner().find(|(_, dim)| **dim == placeholder(axis)).map(|(at, _)| at);
    let found: SmallVec<[Option<usize>; 4]> = (0..dims.len()).map(at).collect();
    let of_list = found.iter().filter(|at| at.is_none()).count();
    (of_list == 1).then(|| found.iter().map(|at| at.unwrap_or(0)).collect())
}

/// The names of a tensor's axes, after one for the list's own axis. That has no name in Arrow, and
/// gets one as in xarray, different from the others.
fn with_list_axis(dims: &Dims, permutation: &[usize]) -> Dims {
    let free = (0..).map(Dim::unnamed).find(|dim| !dims.contains(dim));
    let inner = permutation.iter().filter_map(|&axis| dims.get(axis));
    free.into_iter().chain(inner.cloned()).collect()
}
