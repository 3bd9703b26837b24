//! Runs a program or operator of gt4py.next over arrays: makes GT4Py's fields over their memory, and
//! calls GT4Py. A repeated call runs no Python of dlfield's.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};

use super::declared::OFFSET_PROVIDER;
use super::next_field::NextField;
use crate::interpreter::Inside;

/// Runs a program or operator of ``gt4py.next`` over arrays, without copying them.
///
/// Parameters
/// ----------
/// stencil : callable
///     Called with fields and scalars by name, and with ``offset_provider``.
/// compiled : tuple or None
///     For a compiled program: a function that returns its compiled variants, which are called instead
///     of `stencil`, one that returns the context of a call, and keywords that both take.
/// field_class : callable
///     ``(domain, array)`` to a field.
/// origin_cache : str or None
///     The attribute in which a field caches its origin, which spares GT4Py finding it for each field.
/// as_array : callable
///     Converts an array into one that `field_class` takes. Never copies.
/// domain_of : callable
///     ``(dims, shape, origin)`` to the domain of a field.
/// fields : dict
///     The dimensions of each field by name, and for an output that is cut to the domain its axes there.
/// scalars : dict
///     NumPy's type of each scalar by name.
/// order : sequence of str
///     Names of the arguments of the stencil.
/// collections : dict
///     A `DeclaredCollection` for each argument that is one.
/// tables : dict or None
///     Takes every connectivity of a call by its id, so that no other one gets the id, by which GT4Py
///     finds the code for it.
#[pyclass(frozen, module = "dlfield._core")]
pub(super) struct NextRun {
    stencil: Py<PyAny>,
    compiled: Option<(Py<PyAny>, Py<PyAny>, Py<PyDict>)>,
    fields: Vec<NextField>,
    /// Name and type of each scalar.
    scalars: Vec<(Py<PyAny>, Scalar)>,
    arguments: Vec<(Py<PyAny>, Option<Collection>)>,
    tables: Option<Py<PyDict>>,
}

/// NumPy's type of a scalar.
struct Scalar {
    class: Py<PyAny>,
    is_int: bool,
}

/// A tuple or named collection of values by name.
enum Collection {
    Part(Py<PyAny>),
    Many { parts: Vec<Self>, class: Py<PyAny>, keys: Vec<Py<PyAny>> },
}

#[pymethods]
impl NextRun {
    #[new]
    #[pyo3(signature = (stencil, *, compiled, field_class, origin_cache, as_array, domain_of, fields, scalars, order, collections, tables))]
    #[allow(clippy::too_many_arguments, reason = "keywords, each described above")]
    fn new(
        stencil: &Bound<'_, PyAny>,
        compiled: Option<(Py<PyAny>, Py<PyAny>, Py<PyDict>)>,
        field_class: &Bound<'_, PyAny>,
        origin_cache: Option<Py<PyAny>>,
        as_array: &Bound<'_, PyAny>,
        domain_of: &Bound<'_, PyAny>,
        fields: &Bound<'_, PyDict>,
        scalars: &Bound<'_, PyDict>,
        order: &Bound<'_, PyAny>,
        collections: &Bound<'_, PyDict>,
        tables: Option<Py<PyDict>>,
    ) -> PyResult<Self> {
        let _inside = Inside::enter(stencil.py());
        let field = |(name, declared): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let cache = origin_cache.as_ref().map(|name| name.clone_ref(stencil.py()));
            NextField::new(name, &declared, [field_class, as_array, domain_of], cache)
        };
        let scalar =
            |(name, class): (Bound<'_, PyAny>, _)| Ok((name.unbind(), Scalar::new(class)?));
        let argument = |name: PyResult<Bound<'_, PyAny>>| {
            let name = name?;
            let parts = collections.get_item(&name)?;
            let parts = parts.map(|parts| Collection::read(&parts)).transpose()?;
            Ok((name.unbind(), parts))
        };
        Ok(Self {
            stencil: stencil.clone().unbind(),
            compiled,
            fields: fields.iter().map(field).collect::<PyResult<_>>()?,
            scalars: scalars.iter().map(scalar).collect::<PyResult<_>>()?,
            arguments: order.try_iter()?.map(argument).collect::<PyResult<_>>()?,
            tables,
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.stencil)?;
        if let Some((variants, context, options)) = &self.compiled {
            visit.call(variants)?;
            visit.call(context)?;
            visit.call(options)?;
        }
        self.fields.iter().try_for_each(|field| field.traverse(&visit))?;
        self.scalars.iter().try_for_each(|(_, scalar)| visit.call(&scalar.class))?;
        let collections = self.arguments.iter().filter_map(|(_, parts)| parts.as_ref());
        collections.into_iter().try_for_each(|parts| parts.traverse(&visit))?;
        visit.call(&self.tables)
    }

    /// Compute, as `dlfield.stencils.declaration.Run` has it, with the connectivities of the call.
    ///
    /// The fields live for this call. Into `exec_info` go ``call_run_start_time`` and
    /// ``call_run_end_time``, in seconds of ``time.perf_counter()``.
    #[pyo3(signature = (*, _domain_, _origin_, offset_provider = None, exec_info = None, **arguments))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        _domain_: &Bound<'py, PyTuple>,
        _origin_: &Bound<'py, PyDict>,
        offset_provider: Option<Bound<'py, PyAny>>,
        exec_info: Option<&Bound<'py, PyAny>>,
        arguments: Option<Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let _inside = Inside::enter(py);
        let values = arguments.unwrap_or_else(|| PyDict::new(py));
        for field in &self.fields {
            let made = field.of(py, &values, _domain_, _origin_)?;
            values.set_item(field.name(py), made)?;
        }
        for (name, scalar) in &self.scalars {
            let given = values.get_item(name)?.unwrap_or_else(|| py.None().into_bound(py));
            values.set_item(name, scalar.of(name.bind(py), &given)?)?;
        }
        let given = self.given(py, values)?;
        let provider = offset_provider.unwrap_or_else(|| PyDict::new(py).into_any());
        self.keep(&provider)?;
        let started = exec_info.map(|_| seconds(py)).transpose()?;
        self.call(py, &given, &provider)?;
        if let (Some(info), Some(started)) = (exec_info, started) {
            info.set_item("call_run_start_time", started)?;
            info.set_item("call_run_end_time", seconds(py)?)?;
        }
        Ok(())
    }
}

impl NextRun {
    /// The arguments of the stencil by name.
    fn given<'py>(
        &self,
        py: Python<'py>,
        values: Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        if self.arguments.iter().all(|(_, parts)| parts.is_none()) {
            return Ok(values);
        }
        let given = PyDict::new(py);
        for (name, parts) in &self.arguments {
            let value = match parts {
                Some(parts) => parts.of(py, &values)?,
                None => value_of(&values, name.bind(py))?,
            };
            given.set_item(name, value)?;
        }
        Ok(given)
    }

    /// Keeps the connectivities alive.
    fn keep(&self, provider: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(tables) = &self.tables else { return Ok(()) };
        let Ok(provider) = provider.cast::<PyMapping>() else { return Ok(()) };
        for table in provider.values()?.iter() {
            tables.bind(provider.py()).set_item(table.as_ptr().addr(), &table)?;
        }
        Ok(())
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        given: &Bound<'py, PyDict>,
        provider: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let provided = intern!(py, OFFSET_PROVIDER);
        let Some((variants, context, options)) = &self.compiled else {
            given.set_item(provided, provider)?;
            return self.stencil.bind(py).call((), Some(given)).map(drop);
        };
        let options = options.bind(py).copy()?;
        options.set_item(provided, provider)?;
        let arguments = given.copy()?;
        arguments.update(options.as_mapping())?;
        options.set_item(intern!(py, "kwargs"), given)?;
        let context = context.bind(py).call((), Some(&options))?;
        context.call_method0(intern!(py, "__enter__"))?;
        let variants = variants.bind(py).call1((&self.stencil,));
        let outcome = variants.and_then(|variants| variants.call((), Some(&arguments)));
        leave(&context, outcome.map(drop))
    }
}

/// Leaves a context as a `with` block does.
fn leave(context: &Bound<'_, PyAny>, outcome: PyResult<()>) -> PyResult<()> {
    let (py, exit) = (context.py(), intern!(context.py(), "__exit__"));
    let Err(error) = outcome else {
        return context.call_method1(exit, (py.None(), py.None(), py.None())).map(drop);
    };
    let arguments = (error.get_type(py), error.value(py), error.traceback(py));
    match context.call_method1(exit, arguments).and_then(|handled| handled.is_truthy()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(error),
        Err(other) => {
            other.value(py).setattr(intern!(py, "__context__"), error.value(py))?;
            Err(other)
        }
    }
}

impl Scalar {
    fn new(class: Bound<'_, PyAny>) -> PyResult<Self> {
        let integer = class.py().import("numpy")?.getattr("integer")?;
        let is_int = class.cast::<pyo3::types::PyType>()?.is_subclass(&integer)?;
        Ok(Self { class: class.unbind(), is_int })
    }

    /// The value as NumPy's scalar: gt4py.next takes no other than the declared type.
    fn of<'py>(
        &self,
        name: &Bound<'_, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, class) = (value.py(), self.class.bind(value.py()));
        if value.get_type().is(class) {
            return Ok(value.clone());
        }
        let number = match self.is_int {
            true => py.import("operator").and_then(|module| module.call_method1("index", (value,))),
            false => Ok(value.clone()),
        };
        number.and_then(|number| class.call1((number,))).map_err(|reason| {
            let (shown, kind) = (value.repr(), class.getattr("__name__"));
            let (Ok(shown), Ok(kind)) = (shown, kind) else { return reason };
            let error =
                PyTypeError::new_err(format!("{name}: expected a number of {kind}, got {shown}"));
            error.set_cause(py, Some(reason));
            error
        })
    }
}

impl Collection {
    /// Reads a name or a `dlfield.stencils.declaration.DeclaredCollection`.
    fn read(declared: &Bound<'_, PyAny>) -> PyResult<Self> {
        if declared.is_instance_of::<pyo3::types::PyString>() {
            return Ok(Self::Part(declared.clone().unbind()));
        }
        let parts = declared.getattr("parts")?.try_iter()?.map(|part| Self::read(&part?));
        Ok(Self::Many {
            parts: parts.collect::<PyResult<_>>()?,
            class: declared.getattr("kind")?.unbind(),
            keys: declared.getattr("keys")?.extract()?,
        })
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Self::Many { parts, class, .. } = self else { return Ok(()) };
        visit.call(class)?;
        parts.iter().try_for_each(|part| part.traverse(visit))
    }

    fn of<'py>(&self, py: Python<'py>, values: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let (parts, class, keys) = match self {
            Self::Part(name) => return value_of(values, name.bind(py)),
            Self::Many { parts, class, keys } => (parts, class, keys),
        };
        let parts = parts.iter().map(|part| part.of(py, values)).collect::<PyResult<Vec<_>>>()?;
        if keys.is_empty() {
            return Ok(PyTuple::new(py, parts)?.into_any());
        }
        let attributes = PyDict::new(py);
        for (key, part) in keys.iter().zip(parts) {
            attributes.set_item(key, part)?;
        }
        class.bind(py).call((), Some(&attributes))
    }
}

fn value_of<'py>(
    values: &Bound<'py, PyDict>,
    name: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let missing = || PyValueError::new_err(format!("run: expected '{name}', got none"));
    values.get_item(name)?.ok_or_else(missing)
}

fn seconds(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import(intern!(py, "time"))?.call_method0(intern!(py, "perf_counter"))
}
