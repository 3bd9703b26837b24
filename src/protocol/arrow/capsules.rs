//! Both ways through PyCapsules, which are never renamed: whoever takes a struct out leaves a released one
//! (Arrow PyCapsule interface).

use std::ffi::CStr;
use std::mem::take;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_data::ArrayData;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field as Column};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use super::device::DeviceArray;
use super::export::Exported;
use super::failed;
use super::import::Claims;
use super::stream::Stream;
use super::structs::{Array, Schema};
use crate::device::Device;
use crate::error::{Error, Failure};
use crate::field::{Field, Said};
use crate::managed::{Imported, Managed};
use crate::protocol::ImportRequest;
use crate::protocol::capsule::shown_name;
use crate::protocol::keep::Keep;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const DEVICE_ARRAY: &CStr = c"arrow_device_array";
const STREAM: &CStr = c"arrow_array_stream";

/// Memory that came as an Arrow array, with what its metadata says of it.
type Arrived = (Imported, Said);

/// Asks for an array on any device, one on the host, or a stream with one chunk; where the host's is wanted, for that
/// first. Zero-copy; what is refused is released by its capsule, or at once.
pub(in crate::protocol) fn import(
    obj: &Bound<'_, PyAny>,
    request: ImportRequest,
) -> Result<Option<Arrived>, Failure> {
    let py = obj.py();
    let device = intern!(py, "__arrow_c_device_array__");
    if request.anywhere
        && let Some(method) = obj.getattr_opt(device)?
    {
        return from_device(&method.call0()?).map(Some);
    }
    if let Some(method) = obj.getattr_opt(intern!(py, "__arrow_c_array__"))? {
        return from_host(&method.call0()?).map(Some);
    }
    if let Some(method) = obj.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
        return from_stream(&method.call0()?).map(Some);
    }
    match obj.getattr_opt(device)? {
        Some(method) => from_device(&method.call0()?).map(Some),
        None => Ok(None),
    }
}

fn from_device(answer: &Bound<'_, PyAny>) -> Result<Arrived, Failure> {
    let (schema, array) = pair("__arrow_c_device_array__", answer)?;
    let mut schema = inside::<Schema>("__arrow_c_device_array__", &schema, SCHEMA)?;
    let mut array = inside::<DeviceArray>("__arrow_c_device_array__", &array, DEVICE_ARRAY)?;
    // SAFETY: a capsule of this name holds the struct (Arrow PyCapsule interface), and the pair keeps it. Nothing
    // of the producer runs while it is borrowed.
    let schema = unsafe { schema.as_mut() };
    // SAFETY: as above.
    let array = unsafe { array.as_mut() };
    check_there(schema.is_released() || array.array.is_released())?;
    let device = array.device()?;
    // Both are taken out now: the interpreter may run others while the host waits.
    let (schema, array) = (take(schema), take(array));
    let after = array.follow(answer.py(), device)?;
    let claims = Claims::of(&schema, &array.array, device)?;
    let imported = claims.imported(Arc::new(array.array));
    let imported = match after {
        Some(stream) => imported.after_work_on(stream),
        None => imported,
    };
    Ok((imported, claims.said))
}

fn from_host(answer: &Bound<'_, PyAny>) -> Result<Arrived, Failure> {
    let (schema, array) = pair("__arrow_c_array__", answer)?;
    let schema = inside::<Schema>("__arrow_c_array__", &schema, SCHEMA)?;
    let mut array = inside::<Array>("__arrow_c_array__", &array, ARRAY)?;
    // SAFETY: as in from_device.
    let schema = unsafe { schema.as_ref() };
    // SAFETY: as in from_device.
    let array = unsafe { array.as_mut() };
    check_there(schema.is_released() || array.is_released())?;
    let claims = Claims::of(schema, array, Device::CPU)?;
    let imported = claims.imported(Arc::new(take(array)));
    Ok((imported, claims.said))
}

fn from_stream(answer: &Bound<'_, PyAny>) -> Result<Arrived, Failure> {
    let capsule = capsule("__arrow_c_stream__", answer)?;
    let mut stream = inside::<Stream>("__arrow_c_stream__", &capsule, STREAM)?;
    // SAFETY: as in from_device; it is taken out before the producer's functions are called.
    let stream = unsafe { stream.as_mut() };
    check_there(stream.is_released())?;
    // Other threads of the producer may need the interpreter to fill it.
    let stream = take(stream);
    let (schema, array) = answer.py().detach(|| stream.only_chunk())?;
    check_there(schema.is_released())?;
    let claims = Claims::of(&schema, &array, Device::CPU)?;
    let imported = claims.imported(Arc::new(array));
    Ok((imported, claims.said))
}

type Capsule<'py> = Bound<'py, PyCapsule>;

fn pair<'py>(
    method: &str,
    answer: &Bound<'py, PyAny>,
) -> Result<(Capsule<'py>, Capsule<'py>), Failure> {
    let two = answer.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    let Some(two) = two else {
        return Err(wrong_type(method, "a pair of capsules", answer).into());
    };
    Ok((capsule(method, &two.get_item(0)?)?, capsule(method, &two.get_item(1)?)?))
}

fn capsule<'py>(method: &str, obj: &Bound<'py, PyAny>) -> Result<Capsule<'py>, Failure> {
    Ok(obj.cast::<PyCapsule>().map_err(|_| wrong_type(method, "a capsule", obj))?.clone())
}

fn wrong_type(method: &str, expected: &str, got: &Bound<'_, PyAny>) -> Error {
    let name = got.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    Error::Type(format!("{method}: expected {expected}, got an object of type '{name}'"))
}

/// Where the struct in a capsule of that name is.
fn inside<T>(
    method: &str,
    capsule: &Capsule<'_>,
    name: &'static CStr,
) -> Result<NonNull<T>, Failure> {
    if !capsule.is_valid_checked(Some(name)) {
        return Err(Error::Argument(format!(
            "{method}: expected a capsule with the name '{}', got {}",
            name.to_string_lossy(),
            shown_name(capsule)
        ))
        .into());
    }
    let place = capsule.pointer_checked(Some(name))?.cast::<T>();
    if place.is_aligned() {
        return Ok(place);
    }
    Err(Error::Buffer(format!("{method}: expected an aligned struct, got one at {place:p}")).into())
}

fn check_there(is_released: bool) -> Result<(), Error> {
    if is_released {
        return Err(Error::Argument(
            "Arrow capsule: expected one that nobody has taken, got one that was consumed before; ask the producer \
             again"
                .into(),
        ));
    }
    Ok(())
}

/// What Python gets: schema and array.
type Capsules<'py> = (Capsule<'py>, Capsule<'py>);

/// What an array would be.
///
/// # Errors
/// `BufferError` for what Arrow cannot express without a copy.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    managed: &Managed,
    field: &Field,
) -> PyResult<Capsule<'py>> {
    of_column(py, &Exported::of(managed, field)?.column("")?)
}

/// An array over memory of the host.
///
/// # Errors
/// As [`schema_capsule`].
pub(crate) fn array_capsules<'py>(
    py: Python<'py>,
    managed: &Managed,
    field: &Field,
) -> PyResult<Capsules<'py>> {
    let exported = Exported::of(managed, field)?;
    let schema = of_column(py, &exported.column("")?)?;
    Ok((schema, of_data(py, &exported.data(Keep::new)?)?))
}

/// A table with one column over memory of the host.
///
/// # Errors
/// As [`schema_capsule`].
pub(crate) fn table_capsules<'py>(
    py: Python<'py>,
    managed: &Managed,
    field: &Field,
    name: &str,
) -> PyResult<Capsules<'py>> {
    let exported = Exported::of(managed, field)?;
    let columns = DataType::Struct([Arc::new(exported.column(name)?)].into_iter().collect());
    let child = exported.data(Keep::new)?;
    let table = ArrayData::builder(columns.clone()).len(child.len()).add_child_data(child);
    // SAFETY: one child, as the type has it, of the same length; nothing is null.
    let table = unsafe { table.build_unchecked() };
    Ok((of_column(py, &Column::new("", columns, false))?, of_data(py, &table)?))
}

/// An array over memory of `device`, with the event that whoever takes it waits for.
///
/// # Errors
/// As [`schema_capsule`]; what CUDA refuses.
pub(crate) fn device_capsules<'py>(
    py: Python<'py>,
    managed: &Managed,
    field: &Field,
    device: Device,
) -> PyResult<Capsules<'py>> {
    let exported = Exported::of(managed, field)?;
    let schema = of_column(py, &exported.column("")?)?;
    let array = DeviceArray::of(&exported, device)?;
    Ok((schema, PyCapsule::new_with_value(py, array, DEVICE_ARRAY)?))
}

fn of_column<'py>(py: Python<'py>, column: &Column) -> PyResult<Capsule<'py>> {
    let schema = FFI_ArrowSchema::try_from(column).map_err(failed)?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

fn of_data<'py>(py: Python<'py>, data: &ArrayData) -> PyResult<Capsule<'py>> {
    PyCapsule::new_with_value(py, FFI_ArrowArray::new(data), ARRAY)
}
