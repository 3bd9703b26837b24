//! Presets by name: dlfield's, those that users register, and those that GT4Py alone knows.

use std::ffi::CString;

use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};

use crate::device::Target;
use crate::error::{Error, Failure};
use crate::field::{Dim, Dims, show_dims};
use crate::interpreter::Inside;
use crate::preset::Preset;
use crate::protocol::read::{int, ints, shown, wrong_type};
use crate::storage::{Order, Spec};

/// Looks the preset up that the option `what` names.
///
/// # Errors
/// `ValueError` that lists the known names; what GT4Py's description of a layout raises.
pub(crate) fn preset_of(py: Python<'_>, what: &str, name: &str) -> PyResult<&'static Preset> {
    match Preset::find(name) {
        Some(known) => Ok(known),
        None => of_gt4py(py, name)?.ok_or_else(|| Preset::unknown(what, name).into()),
    }
}

/// Reads a preset from GT4Py's registry of layouts, if GT4Py is imported and has it. It is read
/// each time, since it may change.
fn of_gt4py(py: Python<'_>, name: &str) -> PyResult<Option<&'static Preset>> {
    let internals = py.import(intern!(py, "dlfield.stencils.cartesian.internals"))?;
    let found = internals.call_method1(intern!(py, "layout_of"), (name,))?;
    if found.is_none() {
        return Ok(None);
    }
    let (layout, alignment, gpu) = found.extract()?;
    make(name, &layout, &alignment, gpu).map(Some)
}

/// Warns of a preset that orders no dimension, since it knows none of their names.
pub(super) fn warn_unordered(py: Python<'_>, spec: &Spec) -> PyResult<()> {
    let (Order::Open, Some(preset), Some(dims)) = (&spec.layout, spec.preset, &spec.field.dims)
    else {
        return Ok(());
    };
    if dims.len() < 2 || preset.is_by_position() || dims.iter().any(Dim::is_gt4py) {
        return Ok(());
    }
    let text = format!(
        "backend: expected names among I, J and K, which '{}' orders, got {}, so that memory follows \
         the order of the axes; use run.storage(x) or run.zeros(shape) of a bound stencil, which \
         knows your names, or give layout= beside defaults=",
        preset.name,
        show_dims(dims)
    );
    let text = CString::new(text.replace('\0', "?"))?;
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
}

fn make(
    name: &str,
    layout: &Bound<'_, PyAny>,
    alignment: &Bound<'_, PyAny>,
    gpu: bool,
) -> PyResult<&'static Preset> {
    let items = usize::try_from(int("alignment", alignment)?).ok().filter(|&items| items > 0);
    let items = items.ok_or_else(|| {
        let got = shown(alignment);
        PyValueError::new_err(format!("alignment: expected at least 1 element, got {got}"))
    })?;
    if !layout.is_callable() {
        if layout.is_instance_of::<PyString>() {
            return Err(wrong_type("layout", "ranks or a function of names", layout).into());
        }
        return Ok(Preset::of_ranks(name, &ints("layout", layout)?, items, gpu)?);
    }
    let ranks_of = |dims: &Dims| {
        let names = PyTuple::new(layout.py(), dims.iter().map(Dim::to_string))?;
        ints("layout", &layout.call1((names,))?)
    };
    Ok(Preset::of_function::<Failure>(name, ranks_of, items, gpu)?)
}

/// Register your own preset for ``defaults=``, ``backend=`` and ``DefaultParameters``.
///
/// Parameters
/// ----------
/// name : str
///     Its name. Another preset of that name is replaced, unless dlfield defines it.
/// layout : sequence of 3 ints, callable or None
///     Rank of the strides of I, J and K among each other: 0 is the largest. Data dimensions come
///     outermost. Or a function that gets names, such as ("I", "K", "0"), and returns their ranks in
///     the same order. None removes the preset.
/// alignment : int, optional
///     Of the aligned element of each row, in elements; 1 by default.
/// device : None, "cpu" or "gpu", optional
///     Where its backend computes; on the host by default.
///
/// Raises
/// ------
/// ValueError
///     For a name that dlfield defines, and for an invalid layout, alignment or device. A
///     function has to put data dimensions outermost or innermost.
/// TypeError
///     For values of a wrong type.
///
/// Notes
/// -----
/// Layouts registered with ``gt4py.storage.register`` need no registration here: dlfield looks unknown
/// names up in GT4Py's registry.
#[pyfunction]
#[pyo3(signature = (name, layout, *, alignment = None, device = None))]
pub(crate) fn register_preset(
    name: &str,
    layout: &Bound<'_, PyAny>,
    alignment: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    if layout.is_none() {
        return Ok(Preset::unregister(name)?);
    }
    let _inside = Inside::enter(layout.py());
    let one = PyInt::new(layout.py(), 1).into_any();
    let gpu = match device.map(read_kind).transpose()? {
        Some(Target::Gpu(_)) => true,
        Some(Target::Host) | None => false,
    };
    Ok(make(name, layout, alignment.unwrap_or(&one), gpu)?.register()?)
}

/// Reads the kind of device that a preset is for.
fn read_kind(device: &Bound<'_, PyAny>) -> Result<Target, Failure> {
    let name = device.cast::<PyString>().ok().map(|name| name.to_cow()).transpose()?;
    match name.as_deref() {
        Some("cpu") => Ok(Target::Host),
        Some("gpu") => Ok(Target::Gpu(None)),
        _ => {
            let got = shown(device);
            Err(Error::Argument(format!("device: expected None, 'cpu' or 'gpu', got {got}")).into())
        }
    }
}
