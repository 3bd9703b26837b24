//! Rows of a connectivity that a footprint depends on: what they hold is compared at every call, since
//! their owner may write to them.

use pyo3::intern;
use pyo3::prelude::*;

use crate::dtype::DType;
use crate::managed::Managed;
use crate::protocol::{Request, import};

/// Rows of a table of indices, with what they held when the footprint was found.
pub(super) struct Rows {
    /// The connectivity, and the array that it had.
    table: Py<PyAny>,
    array: Py<PyAny>,
    /// The rows in the array. `None` for one that is not in host memory, or not of int32 or int64: it
    /// never counts as unchanged.
    rows: Option<Managed>,
    /// Marks an entry without a neighbour.
    skip: Option<i64>,
    held: Held,
}

/// The least and the largest index; `None` if all entries are skipped.
#[derive(Debug, Default, PartialEq, Eq)]
struct Held {
    bounds: Option<(i64, i64)>,
    skips: bool,
}

/// A `dlfield.stencils.footprint.TableRows`.
#[derive(FromPyObject)]
struct TableRows<'py> {
    table: Bound<'py, PyAny>,
    array: Bound<'py, PyAny>,
    first: i64,
    end: i64,
    column: Option<i64>,
    skip: Option<i64>,
}

impl Rows {
    /// Reads a `dlfield.stencils.footprint.TableRows`.
    pub(super) fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let TableRows { table, array, first, end, column, skip } = given.extract()?;
        let rows = part(&array, (first, end), column);
        let held = rows.as_ref().and_then(|rows| held(rows, skip)).unwrap_or_default();
        Ok(Self { table: table.unbind(), array: array.unbind(), rows, skip, held })
    }

    /// True if the connectivity has the same array, whose rows hold what they held.
    ///
    /// # Errors
    /// Those of the connectivity.
    pub(super) fn are_unchanged(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(rows) = &self.rows else { return Ok(false) };
        let array = self.table.bind(py).getattr(intern!(py, "ndarray"))?;
        Ok(array.is(&self.array) && held(rows, self.skip).as_ref() == Some(&self.held))
    }
}

/// Two-dimensional memory of the rows.
fn part(table: &Bound<'_, PyAny>, rows: (i64, i64), column: Option<i64>) -> Option<Managed> {
    let memory = import(table, Request::SHARED).ok()?.memory;
    let (ints, dtype) = ([DType::Int32, DType::Int64], memory.dtype());
    if !(memory.device().is_host() && ints.contains(&dtype) && memory.is_aligned()) {
        return None;
    }
    let rows = memory.narrow(0, rows.0, rows.1.checked_sub(rows.0)?).ok()?;
    let rows =
        column.map_or_else(|| Some(rows.clone()), |column| rows.narrow(1, column, 1).ok())?;
    (rows.layout().ndim() == 2).then_some(rows)
}

/// `None` if the rows cannot be read.
fn held(rows: &Managed, skip: Option<i64>) -> Option<Held> {
    match rows.dtype() {
        DType::Int32 => held_as::<i32>(rows, skip),
        _ => held_as::<i64>(rows, skip),
    }
}

fn held_as<T: Copy + Into<i64>>(rows: &Managed, skip: Option<i64>) -> Option<Held> {
    let (layout, start) = (rows.layout(), rows.start().cast::<T>().cast_const());
    let (&[count, width], &[down, along]) = (layout.shape(), layout.strides()) else {
        return None;
    };
    let mut found = Held::default();
    for row in 0..count {
        for column in 0..width {
            let offset = isize::try_from(row * down + column * along).ok()?;
            let place = start.wrapping_offset(offset);
            // SAFETY: an element of host memory that `Managed` keeps, of this type and aligned
            // (`part`). The interpreter is attached; a thread that writes the table without it races
            // with GT4Py's own reading, too, and is the user's to stop.
            let index: i64 = unsafe { place.read() }.into();
            if skip == Some(index) {
                found.skips = true;
                continue;
            }
            let (least, most) = found.bounds.unwrap_or((index, index));
            found.bounds = Some((least.min(index), most.max(index)));
        }
    }
    Some(found)
}
