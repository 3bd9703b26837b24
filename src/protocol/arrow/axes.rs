//! The axes of an import, in the order that the metadata tells, and what it says of them.

use super::metadata::{Tensor, Whole, shortened};
use super::names::{DLFIELD, EXTENSION_METADATA, EXTENSION_NAME, FIXED_SHAPE_TENSOR};
use super::structs::Schema;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::field::{Dim, Dims, Said};
use crate::layout::{Extents, MAX_NDIM};

/// The axes of a field, each with its extent and stride.
pub(super) struct Axes {
    pub(super) shape: Extents,
    pub(super) byte_strides: Extents,
    pub(super) said: Said,
}

impl Axes {
    /// Puts the axes of `shape`, which is that in memory, into the order that the metadata tells.
    pub(super) fn of(schema: &Schema, shape: Extents, dtype: DType) -> Result<Self> {
        let [extension, parameters, whole] =
            schema.metadata([EXTENSION_NAME, EXTENSION_METADATA, DLFIELD])?;
        let tensor = match extension {
            Some(name) if name == FIXED_SHAPE_TENSOR.as_bytes() => {
                Some(Tensor::from_json(parameters.unwrap_or_default())?)
            }
            _ => None,
        };
        let shape = match &tensor {
            Some(tensor) => of_tensors(&shape, tensor)?,
            None => shape,
        };
        let byte_strides = strides_of(&shape, dtype)?;
        let mut this = Self { shape, byte_strides, said: Said::default() };
        if let Some(Tensor { permutation, dims, .. }) = tensor {
            this.permute_inner(&permutation);
            this.said.dims = dims.map(|dims| with_list_axis(permuted(&dims, &permutation)));
        }
        if let Some(text) = whole {
            this = this.restored(Whole::from_json(text)?)?;
        }
        this.check()?;
        Ok(this)
    }

    fn permute_inner(&mut self, permutation: &[usize]) {
        for numbers in [&mut self.shape, &mut self.byte_strides] {
            if let Some((first, rest)) = numbers.split_first() {
                let moved: Extents = std::iter::once(*first)
                    .chain(permutation.iter().filter_map(|&axis| rest.get(axis).copied()))
                    .collect();
                *numbers = moved;
            }
        }
    }

    /// The field that was exported: its own order of axes, and what was known of it.
    fn restored(mut self, whole: Whole) -> Result<Self> {
        for numbers in [&mut self.shape, &mut self.byte_strides] {
            if whole.axis < numbers.len() {
                let length = numbers.remove(0);
                numbers.insert(whole.axis, length);
            }
        }
        let Whole { shape, axis, dims, halo, origin } = whole;
        let differs = |(at, (one, other)): (usize, (&i64, &i64))| at != axis && one != other;
        if shape.len() != self.shape.len() || shape.iter().zip(&self.shape).enumerate().any(differs)
        {
            return Err(Error::Buffer(format!(
                "metadata of dlfield: expected the shape of the array, {:?}, got {}; remove the metadata",
                self.shape,
                shortened(&format!("{shape:?}"))
            )));
        }
        // What was said of the ends of the list holds for the whole list alone.
        let is_whole = shape == self.shape;
        let at_the_ends = halo.as_ref().and_then(|halo| halo.get(axis)).copied();
        let halo = halo.filter(|_| is_whole || at_the_ends == Some((0, 0)));
        let origin = origin.filter(|_| is_whole);
        self.said = Said { dims, halo: halo.into(), origin };
        Ok(self)
    }

    fn check(&self) -> Result<()> {
        let unfit = |error| Error::Buffer(format!("Arrow metadata: {error}; remove the metadata"));
        self.said.check(&self.shape).map_err(unfit)
    }
}

/// The shape of a list of tensors, in memory.
fn of_tensors(shape: &[i64], tensor: &Tensor) -> Result<Extents> {
    let size = tensor.shape.iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent));
    match shape {
        [length, items] if size == Some(*items) && tensor.shape.len() < MAX_NDIM => {
            Ok(std::iter::once(*length).chain(tensor.shape.iter().copied()).collect())
        }
        _ => Err(Error::Buffer(format!(
            "metadata of arrow.fixed_shape_tensor: expected a shape of the lists of {:?} elements, got {}; the array \
             is not valid",
            shape.get(1..).unwrap_or_default(),
            shortened(&format!("{:?}", tensor.shape.as_slice()))
        ))),
    }
}

fn strides_of(shape: &[i64], dtype: DType) -> Result<Extents> {
    let mut stride = i64::try_from(dtype.itemsize()).unwrap_or(i64::MAX);
    let mut strides = Extents::from_elem(0, shape.len());
    for (place, extent) in strides.iter_mut().zip(shape).rev() {
        *place = stride;
        stride = stride.checked_mul((*extent).max(1)).ok_or_else(|| {
            Error::Buffer(format!(
                "Arrow array: expected a shape that memory can have, got {shape:?}"
            ))
        })?;
    }
    Ok(strides)
}

fn permuted(dims: &[Dim], permutation: &[usize]) -> Dims {
    permutation.iter().filter_map(|&axis| dims.get(axis).cloned()).collect()
}

/// A list's own axis has no name: it gets the one that xarray gives to such an axis, so that nobody takes it for
/// one of the others.
fn with_list_axis(dims: Dims) -> Dims {
    let free = (0..).map(Dim::unnamed).find(|dim| !dims.contains(dim));
    free.into_iter().chain(dims.iter().cloned()).collect()
}
