//! Reductions of memory on a GPU, by CuPy.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::asked::Asked;
use super::cupy::Cupy;
use super::given::{At, Given, moved};
use super::known::Way;
use super::outputs::{Output, join_operands};
use super::reduce::{Reducer, Reduces, has_several_points};
use super::site::Site;
use super::work::explained;
use crate::device::Target;
use crate::field::{Axes, Operand, Reduced};
use crate::managed::Managed;
use crate::python::storage::PyStorage;
use crate::storage::Storage;
use crate::sync::Dirty;

impl<'py> Reducer<'_, 'py> {
    /// Lets CuPy reduce. A reduction of all dims is a storage without any, on the GPU.
    pub(super) fn on_gpu(
        &self,
        py: Python<'py>,
        asked: &Asked<'py>,
        site: Site,
        ordinal: i32,
        given: &[Given<'py>],
        output: Option<Output<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(array) = given.first() else { return Err(self.no_array()) };
        let operand = array.operand().unwrap_or(Operand { shape: &[], field: None });
        let along = self.along(py, asked, operand)?;
        let options = self.options(asked, operand)?;
        self.check_options(given.len() > 1, options.as_ref())?;
        let gone: &[usize] = if self.kind == Reduces::Running { &[] } else { &along.axes };
        let reduced = Reduced::new(operand.shape.len(), gone, asked.keepdims);
        let made = match (&output, array.storage()) {
            (None, Some((memory, field))) => {
                let dtype = self.dtype(py, asked, options.as_ref(), memory.dtype())?;
                Some(Storage::for_reduction(memory, field, &reduced, dtype, site.residence)?)
            }
            _ => None,
        };
        let shape = reduced.shape(operand.shape);
        let field = operand.field.map(|field| reduced.field(field, &[]));
        let result = Operand { shape: &shape, field: field.as_ref() };
        let outputs = [output];
        let axes = join_operands(&[result], &outputs)?.axes.first().cloned().unwrap_or_default();
        let keywords = options.unwrap_or_else(|| PyDict::new(py));
        keywords.set_item(intern!(py, "axis"), along.value)?;
        if let Some(dtype) = &asked.dtype {
            keywords.set_item(intern!(py, "dtype"), dtype)?;
        }
        if asked.keepdims {
            keywords.set_item(intern!(py, "keepdims"), true)?;
        }
        let [output] = &outputs;
        let target = Target::Gpu(Some(ordinal));
        let into = match (output, &made) {
            (Some(output), _) => output.memory_at(py, target, self.name)?,
            (None, made) => made.as_ref().and_then(Storage::device_as_is),
        };
        let into = into.cloned().ok_or_else(|| self.no_array())?;
        let outcome = Cupy::work(py, ordinal, self.name, |cupy| {
            self.reduce_into(py, cupy, (array, target), &keywords, (&into, &axes))
        });
        if let Some(output) = output {
            output.mark(py, Dirty::Device);
        }
        outcome.map_err(|error| explained(py, error, output.is_some()))?;
        match (output, made) {
            (None, Some(made)) => {
                made.set_dirty(Dirty::Device);
                Ok(PyStorage::wrap(py, made, None)?.into_bound(py).into_any())
            }
            (output, _) => {
                Ok(output.as_ref().map_or_else(|| py.None().into_bound(py), Output::object))
            }
        }
    }

    /// Reduces, and copies the result along all dims of the output.
    fn reduce_into(
        &self,
        py: Python<'py>,
        cupy: &mut Cupy<'py>,
        (array, target): (&Given<'py>, Target),
        keywords: &Bound<'py, PyDict>,
        (into, axes): (&Managed, &Axes),
    ) -> PyResult<()> {
        let function = self.of_cupy(py, cupy)?;
        let At::Memory(memory) = array.at(py, target, self.name)? else {
            return Err(self.no_array());
        };
        let values = cupy.array(py, memory)?;
        let into = cupy.array(py, into)?;
        let found = function.call((values,), Some(keywords))?;
        let ndim = found.getattr(intern!(py, "ndim"))?.extract()?;
        cupy.copy_to(&into, &moved(found, ndim, axes)?, None, None)
    }

    /// CuPy's function, or method of a universal function.
    fn of_cupy(&self, py: Python<'py>, cupy: &Cupy<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut parts = self.name.strip_prefix("numpy.").unwrap_or(self.name).split('.');
        let first = parts.next().unwrap_or_default();
        let numpys = py.import(intern!(py, "numpy"))?.getattr_opt(first)?;
        let is_numpys =
            self.known_as.1 == Way::Call || numpys.is_some_and(|numpys| numpys.is(self.known_as.0));
        let found = cupy.attribute(first)?.filter(|_| is_numpys);
        let found = parts.try_fold(found, |at, name| match at {
            Some(at) => at.getattr_opt(name),
            None => Ok(None),
        })?;
        found.ok_or_else(|| Cupy::lacks(self.name))
    }

    /// Refuses what CuPy's reductions do not take.
    fn check_options(&self, masked: bool, options: Option<&Bound<'py, PyDict>>) -> PyResult<()> {
        let has = |name: &str| options.is_some_and(|one| one.contains(name).unwrap_or(false));
        let got = match () {
            () if masked => "where",
            () if has("initial") => "initial",
            () if has_several_points(options)? => "several points",
            () => return Ok(()),
        };
        Err(PyTypeError::new_err(format!(
            "{}: expected axis, dtype, out and keepdims alone for memory on a GPU, where CuPy \
             computes, got {got}; use a copy on the host, dlfield.storage(field, device='cpu')",
            self.name
        )))
    }
}
