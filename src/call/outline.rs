//! The outline of an argument: all of it that the outputs of a functional call follow from.

use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyType};

use crate::device::Device;
use crate::field::Field;
use crate::layout::Extents;
use crate::protocol::buffer::shape_and_dtype;
use crate::python::storage::PyStorage;

/// Modules of classes of arrays that have a shape and a device, and no labels.
const WITHOUT_LABELS: [&str; 3] = ["torch", "jaxlib._jax", "cupy"];

pub(super) enum Outline {
    /// The class of a number, whose value decides about no output.
    Number(Py<PyType>),
    /// Shape of an array of exactly NumPy's class.
    Ndarray(Extents),
    Storage {
        class: Py<PyType>,
        shape: Extents,
        labels: Arc<Field>,
        device: Device,
    },
    Foreign {
        class: Py<PyType>,
        shape: Py<PyAny>,
        device: Py<PyAny>,
    },
}

impl Outline {
    /// `None` for all others, such as DataArrays, fields of gt4py.next and subclasses, whose labels
    /// this file does not read.
    pub(super) fn of(value: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let (py, class) = (value.py(), value.get_type());
        if is_number(value) {
            return Ok(Some(Self::Number(class.unbind())));
        }
        if let Some((shape, _)) = shape_and_dtype(value) {
            return Ok(Some(Self::Ndarray(shape)));
        }
        if let Ok(object) = value.cast::<PyStorage>() {
            let storage = object.get().storage();
            return Ok(Some(Self::Storage {
                class: class.unbind(),
                shape: Extents::from_slice(storage.shape()),
                labels: storage.field(),
                device: storage.announced(),
            }));
        }
        let module = class.module()?;
        if !WITHOUT_LABELS.contains(&&*module.to_cow()?) {
            return Ok(None);
        }
        Ok(Some(Self::Foreign {
            class: class.unbind(),
            shape: value.getattr(intern!(py, "shape"))?.unbind(),
            device: value.getattr(intern!(py, "device"))?.unbind(),
        }))
    }

    /// True if a value has this outline.
    ///
    /// # Errors
    /// Those of the array of another framework.
    pub(super) fn is_of(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, class) = (value.py(), value.get_type());
        Ok(match self {
            Self::Number(known) => class.is(known),
            Self::Ndarray(known) => {
                shape_and_dtype(value).is_some_and(|(shape, _)| shape == *known)
            }
            Self::Storage { class: known, shape, labels, device } => {
                let Ok(object) = value.cast::<PyStorage>() else { return Ok(false) };
                let storage = object.get().storage();
                class.is(known)
                    && storage.shape() == shape.as_slice()
                    && storage.announced() == *device
                    && storage.field().has_labels_of(labels)
            }
            Self::Foreign { class: known, shape, device } => {
                class.is(known)
                    && value.getattr(intern!(py, "shape"))?.eq(shape)?
                    && value.getattr(intern!(py, "device"))?.eq(device)?
            }
        })
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Number(class) | Self::Storage { class, .. } => visit.call(class),
            Self::Ndarray(_) => Ok(()),
            Self::Foreign { class, shape, device } => {
                visit.call(class)?;
                visit.call(shape)?;
                visit.call(device)
            }
        }
    }
}

/// True for a bool, an int, a float or a complex of exactly Python's class.
fn is_number(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyComplex>()
}
