//! Kernels in Rust for the arrays of any Python framework.
//!
//! An argument of type [`FieldRef`] or [`FieldMut`] accepts the same arrays as a stencil: NumPy arrays,
//! torch tensors, DataArrays, storages and so on. Nothing is copied. Dtype, alignment and borrows are
//! checked before the function is called.

use dlfield::ndarray::{Axis, Ix3, IxDyn, Zip, s};
use dlfield::{FieldMut, FieldRef, Storage, same_shape};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Writes the five-point Laplacian of `inp` to all points of `out` that have four neighbours, on
/// several threads.
///
/// Axes with names are ordered as I, J, K. Arrays without names keep their order.
#[pyfunction]
fn laplacian(py: Python<'_>, inp: FieldRef<'_, f64>, out: FieldMut<'_, f64>) -> PyResult<()> {
    let inp = inp.in_order::<Ix3>(&["I", "J", "K"])?;
    let mut out = out.in_order::<Ix3>(&["I", "J", "K"])?;
    let shape = inp.shape();
    same_shape([("inp", shape), ("out", out.shape())])?;
    if shape[0] < 2 || shape[1] < 2 {
        return Err(PyValueError::new_err(format!(
            "laplacian: expected at least 2 points along I and J, got {shape:?}; pass larger fields"
        )));
    }
    let (ni, nj) = (shape[0], shape[1]);
    let neighbours = |i: usize, j: usize| inp.slice(s![i..i + ni - 2, j..j + nj - 2, ..]);
    // Releases the GIL, so that other Python threads run.
    py.detach(|| {
        Zip::from(out.slice_mut(s![1..ni - 1, 1..nj - 1, ..]))
            .and(neighbours(1, 1))
            .and(neighbours(0, 1))
            .and(neighbours(2, 1))
            .and(neighbours(1, 0))
            .and(neighbours(1, 2))
            .par_for_each(|out, mid, west, east, south, north| {
                *out = west + east + south + north - 4.0 * mid;
            });
    });
    Ok(())
}

/// Returns the mean along the last dimension, as a storage with the other names and halos.
#[pyfunction]
fn column_mean(field: FieldRef<'_, f64>) -> PyResult<Storage> {
    let Some(last) = field.ndim().checked_sub(1) else {
        return Err(PyValueError::new_err("column_mean: expected at least 1 dimension, got none"));
    };
    let mut builder = Storage::builder(field.shape()[..last].iter().copied());
    if let Some(dims) = field.dims() {
        builder = builder.dims(&dims[..last]);
    }
    if let Some(halo) = field.halo() {
        builder = builder.halo(halo[..last].iter().copied());
    }
    let result = builder.zeros::<f64>()?;
    if let Some(mean) = field.mean_axis(Axis(last)) {
        result.view_mut::<f64, IxDyn>()?.assign(&mean);
    }
    Ok(result)
}

/// Returns the sum of the values inside the halo, in any number of dimensions.
#[pyfunction]
fn domain_sum(py: Python<'_>, field: FieldRef<'_, f32>) -> PyResult<f32> {
    let domain = field.domain()?;
    Ok(py.detach(|| domain.sum()))
}

/// Returns the names and the halo of an argument.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "two lists in Python")]
fn known(field: FieldRef<'_, f64>) -> (Option<Vec<String>>, Option<Vec<(i64, i64)>>) {
    let dims = field.dims().map(|dims| dims.iter().map(ToString::to_string).collect());
    (dims, field.halo().map(|halo| halo.to_vec()))
}

#[pymodule]
mod rust_kernel {
    #[pymodule_export]
    use super::{column_mean, domain_sum, known, laplacian};
}
