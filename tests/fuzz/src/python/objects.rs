//! An object for each door, and pickles.

use std::ffi::c_int;

use arbitrary::{Arbitrary, Result, Unstructured};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::array_struct::capsule;
use super::claims::Claims;
use super::odd::{Odd, or_odd};
use super::view::{Lies, View};
use crate::elements::permutation;

/// An array for `as_storage`.
#[derive(Debug, Clone)]
pub struct Door {
    pub kind: Kind,
    pub claims: Claims,
    pub lies: Lies,
    /// The first number and the flags of the struct of C.
    pub marks: (c_int, c_int),
    /// For an entry of the interface, another value, or none.
    pub odd: Option<(usize, Option<Odd>)>,
    /// An entry that is in no array interface, or only in that of GT4Py.
    pub added: Option<(String, Odd)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Arbitrary)]
pub enum Kind {
    Buffer,
    ArrayInterface,
    ArrayStruct,
    GtInterface,
    CudaInterface,
}

/// Two, and an aligned array in C order, native byte order, and for writing.
const MARKS: (c_int, c_int) = (2, 0x701);

const KEYS: [&str; 5] = ["shape", "strides", "typestr", "data", "version"];
const ADDED: [&str; 8] =
    ["dims", "halo", "unknown_halo", "mask", "descr", "offset", "stream", "acquire"];

impl<'a> Arbitrary<'a> for Door {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        let odd = match input.ratio(1, 5)? {
            true => Some((input.choose_index(KEYS.len())?, input.arbitrary()?)),
            false => None,
        };
        let added = match input.ratio(1, 4)? {
            true => Some(((*input.choose(&ADDED)?).into(), input.arbitrary()?)),
            false => None,
        };
        let marks = if input.ratio(7, 8)? { MARKS } else { input.arbitrary()? };
        let (kind, claims, lies) = input.arbitrary()?;
        Ok(Self { kind, claims, lies, marks, odd, added })
    }
}

impl Door {
    /// True if nothing is said that is not true, by a door of the host.
    #[must_use]
    pub fn is_honest(&self) -> bool {
        let said = match self.kind {
            Kind::Buffer => self.lies.are_none(),
            Kind::ArrayStruct => self.marks == MARKS,
            Kind::ArrayInterface | Kind::GtInterface => self.odd.is_none() && self.added.is_none(),
            Kind::CudaInterface => false,
        };
        said && self.claims.are_true()
    }

    /// True if what is said contradicts itself, or lacks what every array has.
    #[must_use]
    pub fn is_impossible(&self) -> bool {
        match self.kind {
            Kind::Buffer => self.lies.contradict(&self.claims),
            Kind::ArrayStruct => self.marks.0 != 2,
            _ => matches!(self.odd, Some((0 | 2 | 3, None))),
        }
    }

    /// True if the door, as far as it is believed, says what the claims are.
    #[must_use]
    pub fn is_told_as_claimed(&self) -> bool {
        match self.kind {
            Kind::Buffer => self.lies.are_none(),
            Kind::ArrayStruct => true,
            _ => self.odd.is_none() && self.added.is_none(),
        }
    }

    /// The object; `None` where Python itself could not have it.
    ///
    /// # Errors
    /// Those of Python's memory.
    pub fn object<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (name, value) = match self.kind {
            Kind::Buffer => {
                let Some(view) = View::new(self.claims.clone(), self.lies.clone()) else {
                    return Ok(None);
                };
                return Bound::new(py, view)?.into_bound_py_any(py).map(Some);
            }
            Kind::ArrayStruct => {
                let (two, flags) = self.marks;
                let Some(capsule) = capsule(py, &self.claims, two, flags) else { return Ok(None) };
                ("__array_struct__", capsule?)
            }
            Kind::ArrayInterface => ("__array_interface__", self.interface(py)?.into_any()),
            Kind::CudaInterface => ("__cuda_array_interface__", self.interface(py)?.into_any()),
            Kind::GtInterface => {
                let devices = PyDict::new(py);
                devices.set_item("cpu", self.interface(py)?)?;
                ("__gt_data_interface__", devices.into_any())
            }
        };
        let attributes = PyDict::new(py);
        attributes.set_item(name, value)?;
        let namespace = py.import("types")?.getattr("SimpleNamespace")?;
        namespace.call((), Some(&attributes)).map(Some)
    }

    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (claims, found) = (&self.claims, PyDict::new(py));
        let address = (u64::try_from(claims.address).unwrap_or(0), claims.readonly);
        let strides = claims.strides.as_ref().map(|all| PyTuple::new(py, all)).transpose()?;
        let values = [
            PyTuple::new(py, &claims.shape)?.into_bound_py_any(py)?,
            strides.into_bound_py_any(py)?,
            claims.typestr.as_str().into_bound_py_any(py)?,
            address.into_bound_py_any(py)?,
            3.into_bound_py_any(py)?,
        ];
        for (at, (key, value)) in KEYS.into_iter().zip(values).enumerate() {
            match &self.odd {
                Some((odd, None)) if *odd == at => {}
                Some((odd, Some(other))) if *odd == at => found.set_item(key, other.object(py)?)?,
                _ => found.set_item(key, value)?,
            }
        }
        if let Some((key, value)) = &self.added {
            found.set_item(key, value.object(py)?)?;
        }
        Ok(found)
    }
}

/// Arguments of `rebuild_storage`.
#[derive(Debug, Clone)]
pub struct Pickle {
    claims: Claims,
    ranks: Vec<usize>,
    dims: Option<Vec<&'static str>>,
    halo: Option<Vec<(u8, u8)>>,
    alignment: u8,
    /// Another length of the values.
    length: Option<u8>,
    /// In place of an argument, or of a label of the field.
    odd: Option<(usize, Odd)>,
}

const NAMES: [&str; 5] = ["I", "J", "K", "0", "lon"];

/// Arguments, and labels from 5 on, but not the alignment: a large one is as much memory as it says.
const PLACES: [usize; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 9];

impl<'a> Arbitrary<'a> for Pickle {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        let claims: Claims = input.arbitrary()?;
        let ndim = claims.shape.len();
        let mut pickle = Self {
            ranks: permutation(input, ndim)?,
            claims,
            dims: None,
            halo: None,
            alignment: 1,
            length: None,
            odd: None,
        };
        if input.ratio(1, 2)? {
            let name = |input: &mut Unstructured<'_>| input.choose(&NAMES).copied();
            pickle.dims = Some((0..ndim).map(|_| name(input)).collect::<Result<_>>()?);
        }
        if input.ratio(1, 2)? {
            let width = |input: &mut Unstructured<'_>| input.int_in_range(0..=2);
            let widths = (0..ndim).map(|_| Ok((width(input)?, width(input)?)));
            pickle.halo = Some(widths.collect::<Result<_>>()?);
        }
        match input.int_in_range(0..=9)? {
            0 => pickle.length = input.arbitrary()?,
            1 => pickle.alignment = input.arbitrary()?,
            2 => pickle.odd = Some((*input.choose(&PLACES)?, input.arbitrary()?)),
            _ => {}
        }
        Ok(pickle)
    }
}

impl Pickle {
    /// # Errors
    /// Those of Python's memory.
    pub fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let claims = &self.claims;
        let bytes = if claims.are_true() { claims.values() } else { vec![] };
        let bytes = &bytes[..self.length.map_or(bytes.len(), |one| bytes.len().min(one.into()))];
        let at = |place: usize| self.odd.as_ref().filter(|one| one.0 == place).map(|one| &one.1);
        let nothing = || py.None().into_bound(py);
        let field = PyTuple::new(
            py,
            [
                or_odd(py, at(5), &self.dims)?,
                or_odd(py, at(6), &self.halo)?,
                or_odd(py, at(7), nothing())?,
                or_odd(py, at(8), self.alignment)?,
                or_odd(py, at(9), nothing())?,
            ],
        )?;
        PyTuple::new(
            py,
            [
                or_odd(py, at(0), PyBytes::new(py, bytes))?,
                or_odd(py, at(1), &claims.name)?,
                or_odd(py, at(2), PyTuple::new(py, &claims.shape)?)?,
                or_odd(py, at(3), PyTuple::new(py, &self.ranks)?)?,
                or_odd(py, at(4), field)?,
            ],
        )
    }
}
