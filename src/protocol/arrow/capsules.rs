//! Imports and exports PyCapsules. They are never renamed: a consumer leaves a released struct
//! behind (Arrow PyCapsule interface).

use std::ffi::CStr;
use std::mem::replace;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_data::ArrayData;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field as Column};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::critical_section::{with_critical_section, with_critical_section2};
use pyo3::types::{PyCapsule, PyTuple};

use super::device::ArrowDeviceArray;
use super::export::{Exported, invalid_name};
use super::import::take;
use super::stream::{only_chunk, without_rows};
use crate::device::Device;
use crate::error::{Error, Failure};
use crate::field::{Field, Labels};
use crate::interpreter::InObject;
use crate::managed::{Checked, Managed};
use crate::protocol::door::{Answer, Memory, Offer, Request};
use crate::protocol::hooks::Hooks;
use crate::protocol::producer::{Producer, Recognised};
use crate::protocol::read::{aligned, capsule, capsule_name, wrong_answer};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const DEVICE_ARRAY: &CStr = c"arrow_device_array";
const STREAM: &CStr = c"arrow_array_stream";

/// Calls the method for an array on any device, for one on the host, or for a stream with one
/// chunk. If memory of the host is requested, calls that method first. Zero-copy. A refused array
/// is released by its capsule, or at once.
pub(in crate::protocol) fn import<'py>(
    obj: &Bound<'py, PyAny>,
    request: Request,
    known: Recognised,
) -> Answer<'py> {
    if !matches!(known.producer, Producer::Arrow | Producer::Other) {
        return Ok(None); // other libraries say more elsewhere, or copy for Arrow
    }
    let py = obj.py();
    let device = intern!(py, "__arrow_c_device_array__");
    if request.takes_device()
        && let Some(method) = obj.getattr_opt(device)?
    {
        return from_device(&method.call0()?).map(Some);
    }
    if let Some(method) = obj.getattr_opt(intern!(py, "__arrow_c_array__"))? {
        return from_host(&method.call0()?).map(Some);
    }
    if let Some(method) = obj.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
        return from_stream(obj, &method.call0()?).map(Some);
    }
    match obj.getattr_opt(device)? {
        Some(method) => from_device(&method.call0()?).map(Some),
        None => Ok(None),
    }
}

// The structs of capsules are read and moved out in critical sections: no Python code runs there,
// and without the GIL they keep threads of all modules out, so that one of them takes an array.

fn from_device<'py>(answer: &Bound<'py, PyAny>) -> Result<Offer<'py>, Failure> {
    let method = "__arrow_c_device_array__";
    let (schema, array) = pair(method, answer)?;
    let taken = with_critical_section2(&schema, &array, || taken_device(method, &schema, &array));
    let (schema, mut array, device) = taken?;
    let after = array.follow(answer.py(), device)?;
    let (checked, labels) = take(&schema, &mut array.array, device)?;
    let checked = match after {
        Some(stream) => checked.after_work_on(stream),
        None => checked,
    };
    Ok(offer(checked, labels))
}

/// Moves both structs out: other threads may run while the host waits.
fn taken_device(
    method: &str,
    schema: &Capsule<'_>,
    array: &Capsule<'_>,
) -> Result<(FFI_ArrowSchema, ArrowDeviceArray, Device), Failure> {
    let mut schema = inside::<FFI_ArrowSchema>(method, schema, SCHEMA)?;
    let mut array = inside::<ArrowDeviceArray>(method, array, DEVICE_ARRAY)?;
    // SAFETY: a capsule of this name holds an ArrowSchema (Arrow PyCapsule interface), which the
    // caller keeps alive and to itself. The producer does not run while it is borrowed.
    let schema = unsafe { schema.as_mut() };
    // SAFETY: as for the schema, with an ArrowDeviceArray.
    let array = unsafe { array.as_mut() };
    check_unreleased(schema.release().is_none() || array.array.is_released())?;
    let device = array.device()?;
    Ok((replace(schema, FFI_ArrowSchema::empty()), array.take(), device))
}

fn from_host<'py>(answer: &Bound<'py, PyAny>) -> Result<Offer<'py>, Failure> {
    let method = "__arrow_c_array__";
    let (schema, array) = pair(method, answer)?;
    let taken = with_critical_section2(&schema, &array, || taken_host(method, &schema, &array));
    let (checked, labels) = taken?;
    Ok(offer(checked, labels))
}

/// Takes the array if its claims hold, and leaves it to its capsule otherwise.
fn taken_host(
    method: &str,
    schema: &Capsule<'_>,
    array: &Capsule<'_>,
) -> Result<(Checked, Labels), Failure> {
    let schema = inside::<FFI_ArrowSchema>(method, schema, SCHEMA)?;
    let mut array = inside::<FFI_ArrowArray>(method, array, ARRAY)?;
    // SAFETY: as in taken_device.
    let schema = unsafe { schema.as_ref() };
    // SAFETY: as in taken_device, with an ArrowArray.
    let array = unsafe { array.as_mut() };
    check_unreleased(schema.release().is_none() || array.is_released())?;
    Ok(take(schema, array, Device::CPU)?)
}

fn from_stream<'py>(
    obj: &Bound<'py, PyAny>,
    answer: &Bound<'py, PyAny>,
) -> Result<Offer<'py>, Failure> {
    let capsule = capsule("__arrow_c_stream__", answer)?;
    let stream = with_critical_section(capsule, || taken_stream(capsule))?;
    // Other threads of the producer may need the interpreter to produce the chunk.
    let (schema, chunk) = answer.py().detach(|| only_chunk(stream))?;
    check_unreleased(schema.release().is_none())?;
    let mut array = match chunk {
        Some(array) => array,
        None if obj.len().is_ok_and(|rows| rows == 0) => without_rows(&schema)?,
        None => {
            return Err(Error::Buffer(
                "Arrow stream: expected one chunk, got none; the stream is empty, or was read \
                 already"
                    .into(),
            )
            .into());
        }
    };
    let (checked, labels) = take(&schema, &mut array, Device::CPU)?;
    Ok(offer(checked, labels))
}

/// Moves the stream out before the producer runs.
fn taken_stream(capsule: &Capsule<'_>) -> Result<FFI_ArrowArrayStream, Failure> {
    let mut stream = inside::<FFI_ArrowArrayStream>("__arrow_c_stream__", capsule, STREAM)?;
    // SAFETY: as in taken_device, with an ArrowArrayStream.
    let stream = unsafe { stream.as_mut() };
    check_unreleased(stream.release().is_none())?;
    Ok(replace(stream, FFI_ArrowArrayStream::empty()))
}

fn offer<'py>(checked: Checked, labels: Labels) -> Offer<'py> {
    Offer { memory: Memory::Claims(checked), labels: labels.into(), hooks: Hooks::default() }
}

type Capsule<'py> = Bound<'py, PyCapsule>;

/// A schema and an array.
type CapsulePair<'py> = (Capsule<'py>, Capsule<'py>);

fn pair<'py>(method: &str, answer: &Bound<'py, PyAny>) -> Result<CapsulePair<'py>, Failure> {
    let two = answer.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    let two = two.ok_or_else(|| wrong_answer(method, "a pair of capsules", answer))?;
    let (schema, array) = (two.get_item(0)?, two.get_item(1)?);
    Ok((capsule(method, &schema)?.clone(), capsule(method, &array)?.clone()))
}

/// Address of the struct in a capsule with the given name.
fn inside<T>(
    method: &str,
    capsule: &Capsule<'_>,
    name: &'static CStr,
) -> Result<NonNull<T>, Failure> {
    if capsule.is_valid_checked(Some(name)) {
        return aligned(method, capsule, Some(name));
    }
    Err(Error::Argument(format!(
        "{method}: expected a capsule with the name '{}', got {}",
        name.to_string_lossy(),
        capsule_name(capsule)
    ))
    .into())
}

fn check_unreleased(is_released: bool) -> Result<(), Error> {
    if is_released {
        return Err(Error::Argument(
            "Arrow capsule: expected one that was not consumed, got one that was consumed before; \
             ask the producer again"
                .into(),
        ));
    }
    Ok(())
}

/// Exports the schema of an array.
///
/// # Errors
/// `BufferError` for memory that Arrow cannot express without a copy.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    managed: &Managed,
    field: &Field,
) -> PyResult<Capsule<'py>> {
    schema_to_capsule(py, &Exported::new(managed, field)?.column("")?)
}

/// Exports host memory as an array.
pub(crate) fn array_capsules<'py>(
    py: Python<'py>,
    managed: &Managed,
    field: &Field,
) -> PyResult<CapsulePair<'py>> {
    let exported = Exported::new(managed, field)?;
    let schema = schema_to_capsule(py, &exported.column("")?)?;
    Ok((schema, array_to_capsule(py, &exported.data(|memory| memory)?)?))
}

/// Exports host memory as a table with one column.
pub(crate) fn table_capsules<'py>(
    py: Python<'py>,
    managed: &Managed,
    field: &Field,
    name: &str,
) -> PyResult<CapsulePair<'py>> {
    let exported = Exported::new(managed, field)?;
    let columns = DataType::Struct([Arc::new(exported.column(name)?)].into_iter().collect());
    let child = exported.data(|memory| memory)?;
    let table = ArrayData::builder(columns.clone()).len(child.len()).add_child_data(child);
    // SAFETY: the type has one field, and its child has the same length. There are no nulls.
    let table = unsafe { table.build_unchecked() };
    Ok((schema_to_capsule(py, &Column::new("", columns, false))?, array_to_capsule(py, &table)?))
}

/// Exports memory of `device` as an array, with an event that the consumer waits for.
///
/// # Errors
/// As [`schema_capsule`]; `DeviceUnavailable` if CUDA fails.
pub(crate) fn device_capsules<'py>(
    py: Python<'py>,
    managed: &Managed,
    field: &Field,
    device: Device,
) -> PyResult<CapsulePair<'py>> {
    let exported = Exported::new(managed, field)?;
    let schema = schema_to_capsule(py, &exported.column("")?)?;
    // SAFETY: the capsule owns it, and Python frees objects attached.
    let array = unsafe { InObject::new(ArrowDeviceArray::new(&exported, device)?) };
    Ok((schema, PyCapsule::new_with_value(py, array, DEVICE_ARRAY)?))
}

fn schema_to_capsule<'py>(py: Python<'py>, column: &Column) -> PyResult<Capsule<'py>> {
    let schema = FFI_ArrowSchema::try_from(column).map_err(invalid_name)?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

fn array_to_capsule<'py>(py: Python<'py>, data: &ArrayData) -> PyResult<Capsule<'py>> {
    // SAFETY: the capsule owns it, and Python frees objects attached.
    let array = unsafe { InObject::new(FFI_ArrowArray::new(data)) };
    PyCapsule::new_with_value(py, array, ARRAY)
}
