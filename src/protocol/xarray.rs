//! Door: an `xarray.DataArray`, read through its variable, or a variable itself, with its dims by name.
//!
//! `np.asarray(data_array)` loses the names, which is how a field with dims K, J, I has ended up
//! in a stencil as I, J, K. A class may name its axes for GT4Py itself, with `__gt_dims__`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};

use super::arrival::Arrival;
use super::door::{Answer, Memory, Offer, Request};
use super::gt4py;
use super::hooks::Hooks;
use super::producer::{KnownClass, Producer, Recognised, is_plain_ndarray, known};
use super::read;
use crate::error::{Error, Failure};
use crate::field::{Dims, Labels};
use crate::layout::lies_within;
use crate::managed::Managed;
use crate::short_ways::short_ways;

/// The accessors that dlfield installs describe what is read here without them.
static DEFAULT: KnownClass = known(Producer::Other, "dlfield.xarray.accessors", "DefaultAccessor");
/// The class of the array and names in a DataArray, and of an array with names by itself. That of an
/// index is a subclass.
static VARIABLE: KnownClass = known(Producer::Other, "xarray", "Variable");

/// Offers the array inside a DataArray with its names, or the claims of a user's accessor.
///
/// GT4Py's attributes, by inheritance or as registered accessors, are looked up in the class first:
/// a DataArray searches long for an attribute that it does not have.
pub(super) fn import<'py>(
    data_array: &Bound<'py, PyAny>,
    request: Request,
    known: Recognised,
) -> Answer<'py> {
    if known.producer != Producer::Xarray {
        return Ok(None);
    }
    let py = data_array.py();
    let (class, own) = (data_array.get_type(), own_names(data_array)?);
    let fields = if known.exactly { Fields::read(data_array)? } else { None };
    let dims = match (&own, &fields) {
        (Some(own), _) => own.clone(),
        (None, Some(fields)) => read::names(&fields.dims)?,
        (None, None) => variable_names(data_array)?,
    };
    let origin = class.hasattr(intern!(py, "__gt_origin__"))?;
    let origin = if origin { gt4py::origin(data_array)? } else { None };
    let accessor = gt4py::import_from(data_array, own_interfaces(&class)?, request)?;
    let data = match fields {
        Some(fields) => fields.data,
        None => data(data_array, accessor.is_some())?,
    };
    let Some(Offer { memory: Memory::Claims(claims), labels, hooks }) = accessor else {
        let labels = Labels { dims: Some(dims), origin, ..Labels::default() }.into();
        let (memory, hooks) = (Memory::Wrapped(data), Hooks::default());
        return Ok(Some(Offer { memory, labels, hooks }));
    };
    let mut labels = labels.into_labels();
    let named = labels.dims.is_some();
    labels.supplement(own, origin)?;
    labels.dims.get_or_insert(dims);
    let memory = Memory::Accessor { claims, inner: data, named };
    Ok(Some(Offer { memory, labels: labels.into(), hooks }))
}

/// The array in a DataArray, and the tuple of its names, if no attribute of its class says more.
///
/// `None` for all other objects, and for a DataArray that has to be read through its properties. No
/// code runs that is not xarray's or dlfield's.
pub(crate) fn array_and_dims<'py>(
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyTuple>)>> {
    if !Recognised::met(object).is_some_and(|known| known.is_exactly(Producer::Xarray)) {
        return Ok(None);
    }
    let (py, class) = (object.py(), object.get_type());
    let says_more = own_interfaces(&class)?.next().is_some()
        || has_own(&class, intern!(py, "__gt_dims__"))?
        || class.hasattr(intern!(py, "__gt_origin__"))?;
    let fields = if says_more { None } else { Fields::read(object)? };
    Ok(fields.map(|fields| (fields.data, fields.dims)))
}

/// The values behind the properties of a DataArray with plain memory, read without their Python code,
/// which is some forty lines for `variable.data` alone. The first DataArray that is read has to show
/// that its properties give the same.
struct Fields<'py> {
    /// The array that `variable.data` gives, exactly of NumPy's class.
    data: Bound<'py, PyAny>,
    /// The value of `variable.dims`.
    dims: Bound<'py, PyTuple>,
}

impl<'py> Fields<'py> {
    /// Reads the fields of an object of exactly xarray's class; `None` if its variable is of another
    /// class, or holds another array, or if this xarray is found to keep its values elsewhere.
    fn read(data_array: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let py = data_array.py();
        let Some(variable) = data_array.getattr_opt(intern!(py, "_variable"))? else {
            return Ok(None);
        };
        if !VARIABLE.class(py)?.is_some_and(|class| variable.get_type().is(&class)) {
            return Ok(None);
        }
        let data = variable.getattr_opt(intern!(py, "_data"))?;
        let dims = variable.getattr_opt(intern!(py, "_dims"))?;
        let Some((data, dims)) = data.zip(dims) else { return Ok(None) };
        let Ok(dims) = dims.cast_into_exact::<PyTuple>() else { return Ok(None) };
        if !is_plain_ndarray(&data) {
            return Ok(None);
        }
        let found = Self { data, dims };
        static FOUND: PyOnceLock<bool> = PyOnceLock::new();
        let agree = *FOUND.get_or_try_init(py, || {
            Ok::<_, PyErr>(short_ways() && found.agree_with(data_array)?)
        })?;
        Ok(agree.then_some(found))
    }

    /// True if the properties give what was found behind them.
    fn agree_with(&self, data_array: &Bound<'py, PyAny>) -> PyResult<bool> {
        let variable = data_array.getattr("variable")?;
        let (data, dims) = (variable.getattr("data")?, variable.getattr("dims")?);
        Ok(data.is(&self.data) && dims.is(&self.dims))
    }
}

/// The array in a DataArray. Refuses a variable on disk that xarray loads anew at each access: a
/// write into it would be lost. With an accessor the array may be anything.
fn data<'py>(data_array: &Bound<'py, PyAny>, accessor: bool) -> Result<Bound<'py, PyAny>, Failure> {
    let name = intern!(data_array.py(), "data");
    let variable = variable(data_array)?;
    let (data, again) = (variable.getattr(name)?, variable.getattr(name)?);
    if accessor || again.is(&data) || is_same_memory(&data, &again)? {
        return Ok(data);
    }
    Err(Error::Type(
        "DataArray: expected one whose data is in memory, got one that xarray loads anew at each \
         access; call .load() or .compute() first"
            .into(),
    )
    .into())
}

/// True if both describe the same memory: an index is wrapped anew at each access, in place.
fn is_same_memory(one: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
    let name = intern!(one.py(), "__array_interface__");
    match (one.getattr_opt(name)?, other.getattr_opt(name)?) {
        (Some(one), Some(other)) => one.eq(other),
        _ => Ok(false),
    }
}

/// Adds to what a user's accessor says what it leaves open, from the array it is about, if that was
/// found.
///
/// # Errors
/// [`Error::Buffer`] if the accessor is about other memory; what
/// [`Labelled::under`](crate::field::Labelled::under) refuses; the failure to find the array.
pub(super) fn supplement(
    described: Arrival,
    found: Result<Arrival, Failure>,
    named: bool,
) -> Result<Arrival, Failure> {
    let data = match found {
        Ok(data) => data,
        // The data has no door, or is elsewhere: the accessor alone speaks for it.
        Err(Failure::Ours(Error::Type(_) | Error::Device(_) | Error::NoBuffer(_))) => {
            return Ok(described);
        }
        Err(failure) => return Err(failure),
    };
    check_current(&described.memory, &data.memory)?;
    let Arrival { memory, labels, hooks, .. } = described;
    let memory = if data.memory.readonly() { memory.into_readonly() } else { memory };
    let labels = data.labels.under(labels, named)?;
    Ok(Arrival { memory, labels, hooks: hooks.or(data.hooks), ..described })
}

/// Refuses an accessor about memory outside that of the data, which nothing keeps alive: xarray
/// keeps accessors from before `data` was replaced. Memory on another device is the user's to
/// describe.
fn check_current(described: &Managed, data: &Managed) -> Result<(), Error> {
    let comparable = described.device().is_host() == data.device().is_host()
        && described.layout().size() > 0
        && data.layout().size() > 0;
    let (inner, outer) = (described.layout(), data.layout());
    if !comparable || lies_within(inner, described.position(), outer, data.position()) {
        return Ok(());
    }
    Err(Error::Buffer(
        "DataArray: expected an accessor that describes its data, got one about other memory; \
         xarray keeps accessors from before `data` was replaced: make a new DataArray, or read the \
         data anew in the accessor"
            .into(),
    ))
}

/// The names of the axes, as an import reads them.
pub(super) fn dims(data_array: &Bound<'_, PyAny>) -> Result<Dims, Failure> {
    let own = own_interfaces(&data_array.get_type())?;
    let dims = gt4py::dims_of_interface(data_array, own)?;
    let mut labels = Labels { dims, ..Labels::default() };
    labels.supplement(own_names(data_array)?, None)?;
    match labels.dims {
        Some(dims) => Ok(dims),
        None => Ok(variable_names(data_array)?),
    }
}

/// GT4Py's data interfaces of a class, unless they are dlfield's own.
fn own_interfaces<'py>(
    class: &Bound<'py, PyType>,
) -> PyResult<impl Iterator<Item = &'py Bound<'py, PyString>> + use<'py>> {
    let mut own = [None; 2];
    for (slot, name) in own.iter_mut().zip(gt4py::interface_names(class.py())) {
        *slot = has_own(class, name)?.then_some(name);
    }
    Ok(own.into_iter().flatten())
}

/// The names of the axes that its class states for GT4Py, if it does.
fn own_names(data_array: &Bound<'_, PyAny>) -> PyResult<Option<Dims>> {
    if has_own(&data_array.get_type(), intern!(data_array.py(), "__gt_dims__"))? {
        return gt4py::dims(data_array);
    }
    Ok(None)
}

/// The dims of its variable.
fn variable_names(data_array: &Bound<'_, PyAny>) -> PyResult<Dims> {
    let dims = variable(data_array)?.getattr(intern!(data_array.py(), "dims"))?;
    Ok(read::names(&dims)?)
}

/// The variable of a DataArray; a variable itself.
fn variable<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    match array.getattr_opt(intern!(py, "variable"))? {
        Some(variable) => Ok(variable),
        None => Ok(array.clone()),
    }
}

/// The array in a DataArray or a variable, if no attribute of its class says more; `None` for all
/// other objects.
pub(crate) fn array_in<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let class = object.get_type();
    let is_of_xarray = Recognised::new(object)?.producer == Producer::Xarray;
    let says_more = || {
        let interface = own_interfaces(&class)?.next().is_some();
        Ok::<_, PyErr>(interface || has_own(&class, intern!(object.py(), "__gt_dims__"))?)
    };
    if !is_of_xarray || says_more()? {
        return Ok(None);
    }
    variable(object)?.getattr(intern!(object.py(), "data")).map(Some)
}

/// True if a class has an attribute that is not dlfield's own.
fn has_own(class: &Bound<'_, PyType>, name: &Bound<'_, PyString>) -> PyResult<bool> {
    let Some(found) = class.getattr_opt(name)? else {
        return Ok(false);
    };
    let default = DEFAULT.class(class.py())?;
    Ok(!default.is_some_and(|default| found.get_type().is(&default)))
}
