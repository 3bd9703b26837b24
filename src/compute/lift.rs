//! A function that is lifted to storages: its operands are read, the place where it computes is chosen
//! (GDP-3's draft, "Mixing Devices"), and what it wrote is marked.
//!
//! The draft lets a GPU compute with an array of the host. Here that is refused: CuPy takes no arrays of
//! NumPy, and copying one at each call would make a time loop slow without a warning.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use super::operands::Operand;
use super::others::Others;
use crate::device::Target;
use crate::error::Error;
use crate::field::{Joined, Operand as Labels, show_dims};
use crate::interpreter::Caller;
use crate::python::storage::PyStorage;
use crate::storage::Residence;
use crate::sync::Dirty;

/// The operands and outputs of a call, and where it computes.
pub(super) struct Lift<'a, 'py> {
    /// The function's name in messages.
    pub(super) name: &'a str,
    /// The inputs, and the mask behind them if there is one.
    pub(super) operands: SmallVec<[Operand<'py>; 4]>,
    /// How many operands are no mask.
    count: usize,
    /// The caller's outputs; `None` where a storage is to be made.
    pub(super) outputs: SmallVec<[Option<Operand<'py>>; 2]>,
    /// The host, or a GPU by its number.
    pub(super) target: Target,
    /// The buffers of a new result: those of the storage that decides.
    pub(super) residence: Residence,
}

/// How the names of operands belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// As of one field.
    Shared,
    /// Those of the operands differ, as in an outer product.
    Apart,
}

impl<'a, 'py> Lift<'a, 'py> {
    /// Reads operands and outputs; `None` if one of them is to decide what happens, as `others` says. A
    /// mask never does: it would lose its names.
    ///
    /// # Errors
    /// `BufferError` for an array that is not where the function computes, and `TypeError` for one that
    /// cannot be read.
    pub(super) fn read(
        name: &'a str,
        inputs: &[Bound<'py, PyAny>],
        mask: Option<&Bound<'py, PyAny>>,
        out: &[Option<Bound<'py, PyAny>>],
        others: Others,
    ) -> PyResult<Option<Self>> {
        let beside_gpu = || {
            let objects = inputs.iter().chain(mask).chain(out.iter().flatten());
            let mut storages = objects.filter_map(|object| object.cast::<PyStorage>().ok());
            storages.any(|storage| storage.get().storage().device_as_is().is_some())
        };
        let (target, residence) = (Target::Host, Residence::Host);
        let (operands, outputs) = (SmallVec::new(), SmallVec::new());
        let mut lift = Self { name, operands, count: inputs.len(), outputs, target, residence };
        let masks = mask.into_iter().map(|mask| (mask, Others::AreRead));
        for (object, others) in inputs.iter().map(|object| (object, others)).chain(masks) {
            let Some(operand) = Operand::read(object, name, others, beside_gpu)? else {
                return Ok(None);
            };
            lift.operands.push(operand);
        }
        for object in out {
            let read = |object| Operand::read_output(object, name, others);
            match object.as_ref().map(read).transpose()? {
                Some(None) => return Ok(None),
                output => lift.outputs.push(output.flatten()),
            }
        }
        lift.choose_target()?;
        Ok(Some(lift))
    }

    /// Chooses where the function computes. The first storage that is kept in step decides, else the
    /// first storage: the function computes where its memory is. A pair computes on the GPU if an
    /// array is newest there; memory that CUDA manages, if a GPU can have all of them.
    fn choose_target(&mut self) -> PyResult<()> {
        let all = || self.operands.iter().chain(self.outputs.iter().flatten());
        if all().all(Operand::is_of_host) {
            return Ok(());
        }
        let deciding = || self.inputs().iter().chain(self.outputs.iter().flatten());
        let residences = || deciding().filter_map(Operand::residence);
        let in_step =
            |one: &Residence| matches!(one, Residence::Mirrored(_) | Residence::Unified(_));
        let residence =
            residences().find(in_step).or_else(|| residences().next()).unwrap_or_default();
        let on_gpu = match residence {
            Residence::Host => false,
            Residence::Device(_) => true,
            Residence::Mirrored(_) => self.operands.iter().any(Operand::is_on_gpu),
            Residence::Unified(_) => self.operands.iter().all(Operand::is_for_gpu),
        };
        let target = if on_gpu { Target::Gpu(residence.ordinal()) } else { Target::Host };
        all().try_for_each(|one| one.check_at(target, self.name))?;
        (self.target, self.residence) = (target, residence);
        Ok(())
    }

    /// The operands without the mask.
    pub(super) fn inputs(&self) -> &[Operand<'py>] {
        self.operands.get(..self.count).unwrap_or_default()
    }

    /// The mask.
    pub(super) fn mask(&self) -> Option<&Operand<'py>> {
        self.operands.get(self.count)
    }

    /// Joins operands, in the shape of the caller's outputs if there are any. A single input goes there
    /// as in an assignment. The last operand may be a mask, whose dimensions may be in any order.
    pub(super) fn join(
        &self,
        py: Python<'py>,
        operands: &[Labels<'_>],
        names: Names,
    ) -> PyResult<Joined> {
        let caller = Caller::of_now(py)?;
        self.check_outputs(py)?;
        let has_mask = self.mask().is_some_and(|mask| mask.labels().is_some());
        let masked = operands.split_last().filter(|_| has_mask && !caller.has_matched());
        let joined = match masked {
            Some((mask, inputs)) if !inputs.is_empty() => {
                let mut joined = self.join_inputs(caller, inputs, names)?;
                match joined.axes_of(*mask) {
                    Some(axes) => joined.axes.push(axes),
                    None => joined = self.join_inputs(caller, operands, names)?,
                }
                joined
            }
            _ => self.join_inputs(caller, operands, names)?,
        };
        let mut outputs = self.outputs.iter().flatten();
        outputs.try_for_each(|output| check_fits(output, &joined))?;
        Ok(joined)
    }

    fn join_inputs(
        &self,
        caller: Caller,
        operands: &[Labels<'_>],
        names: Names,
    ) -> PyResult<Joined> {
        let output = self.outputs.iter().flatten().find(|output| output.storage().is_some());
        let storage = output.and_then(Operand::storage);
        let target = storage
            .map(|(memory, field)| Labels { shape: memory.layout().shape(), field: Some(field) });
        Ok(match (caller, target) {
            (_, None) if names == Names::Apart => Joined::outer(operands)?,
            (Caller::User, None) => Joined::new(operands)?,
            (Caller::User, Some(target)) => match operands {
                [operand] if self.count == 1 => Joined::assigned(target, *operand)?,
                _ => Joined::within(target, operands)?,
            },
            (_, None) => Joined::by_position(operands)?,
            (_, Some(target)) => Joined::by_position(operands)?.broadcast_to(target.shape)?,
        })
    }

    /// Refuses outputs with names where xarray calls with the arrays inside: what is written would go by
    /// position. Its operators in place write into one of their operands.
    pub(super) fn check_outputs(&self, py: Python<'_>) -> PyResult<()> {
        for output in self.outputs.iter().flatten() {
            let field = output.storage().map(|(_, field)| field);
            let Some(dims) = field.and_then(|field| field.dims.as_ref()) else { continue };
            let is_operand = self.inputs().iter().any(|one| one.is(output));
            if !is_operand && Caller::of_now(py)? == Caller::Xarray {
                return Err(PyTypeError::new_err(format!(
                    "{}: expected no out= with dims beside a DataArray, whose names xarray does not \
                     pass on, got one with the dims {}; assign the result by name: storage[...] = \
                     {0}(...)",
                    self.name,
                    show_dims(dims)
                )));
            }
        }
        Ok(())
    }

    /// Marks the side that a call has written, perhaps in part if it has raised. NumPy and CuPy
    /// refuse types before they write; a note in other errors says what the caller's outputs hold.
    pub(super) fn written<T>(
        &self,
        py: Python<'py>,
        outputs: &[Operand<'py>],
        outcome: PyResult<T>,
    ) -> PyResult<T> {
        let side = if self.target == Target::Host { Dirty::Host } else { Dirty::Device };
        let storages = outputs.iter().filter_map(|output| match output {
            Operand::Storage(storage, _) => Some(storage.get().storage()),
            _ => None,
        });
        for storage in storages.filter(|storage| storage.sync_state().is_some()) {
            py.detach(|| storage.set_dirty(side));
        }
        outcome.inspect_err(|error| {
            let is_callers = self.outputs.iter().any(Option::is_some);
            if is_callers && !error.is_instance_of::<PyTypeError>(py) {
                let note = "out: some elements may have been written before the error";
                drop(error.value(py).call_method1(intern!(py, "add_note"), (note,)));
            }
        })
    }
}

/// Refuses an output of another shape or order than the result.
fn check_fits(output: &Operand<'_>, joined: &Joined) -> PyResult<()> {
    let Some(Labels { shape, field }) = output.labels() else { return Ok(()) };
    if let (Some(own), Some(dims)) = (field.and_then(|field| field.dims.as_ref()), &joined.dims)
        && own != dims
    {
        return Err(Error::Argument(format!(
            "out: expected the dims {}, got {}; transpose or rename it",
            show_dims(dims),
            show_dims(own)
        ))
        .into());
    }
    if *shape == *joined.shape {
        return Ok(());
    }
    Err(Error::Argument(format!(
        "out: expected an array of the result's shape {:?}, got shape {shape:?}; pass one of that \
         shape, or none",
        joined.shape.as_slice()
    ))
    .into())
}

/// The result of a call. Several results are a tuple.
pub(super) fn result<'py>(
    py: Python<'py>,
    outputs: &[Operand<'py>],
) -> PyResult<Bound<'py, PyAny>> {
    match outputs {
        [one] => Ok(one.object()),
        several => Ok(PyTuple::new(py, several.iter().map(Operand::object))?.into_any()),
    }
}
