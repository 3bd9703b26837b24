//! Facts about some producers that no protocol expresses.
//!
//! - JAX and Arrow arrays are immutable, whatever their capsules and buffers claim. Writing
//!   through one changes values that the library believes constant.
//! - A masked array hides elements that its buffer shows.
//! - A torch tensor may have a lazy state, see `lazy`, or be used where torch records, see
//!   `recorded`.
//!
//! The classes themselves are recognised by identity, which costs a comparison; their subclasses
//! and everything else by the modules of the bases. Nothing is ever imported here.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use pyo3::{ffi, intern};

use super::{class, lazy, recorded};
use crate::error::{Error, Failure};
use crate::managed::Managed;

/// A kind of producer that needs more, or less, than its protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Producer {
    /// `numpy.ma.MaskedArray`.
    Masked,
    /// `numpy.datetime64` and `numpy.timedelta64`, whose buffers show bytes.
    Time,
    /// `numpy.ndarray`.
    Numpy,
    /// `torch.Tensor`.
    Torch,
    /// JAX arrays.
    Jax,
    /// Everything of pyarrow.
    Arrow,
    /// Everything of pandas. It is not asked for Arrow arrays: it copies if it has none, and does not
    /// say so.
    Pandas,
    /// `xarray.DataArray` and `xarray.Variable`.
    Xarray,
    /// NDSL's `Quantity`.
    Quantity,
    /// The package's own class of storages.
    Storage,
    /// Everything else.
    Other,
}

/// A producer and whether the object is exactly of its class, so that no attribute that a subclass
/// may have added needs to be looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recognised {
    pub(super) producer: Producer,
    pub(super) exactly: bool,
}

/// Class by module and name, remembered once it was met.
pub(super) struct KnownClass {
    producer: Producer,
    module: &'static str,
    name: &'static str,
    class: PyOnceLock<Py<PyType>>,
}

pub(super) const fn known(
    producer: Producer,
    module: &'static str,
    name: &'static str,
) -> KnownClass {
    KnownClass { producer, module, name, class: PyOnceLock::new() }
}

static KNOWN: [KnownClass; 8] = [
    known(Producer::Masked, "numpy.ma", "MaskedArray"), // before the class it derives from
    known(Producer::Numpy, "numpy", "ndarray"),
    known(Producer::Torch, "torch", "Tensor"),
    known(Producer::Jax, "jaxlib._jax", "ArrayImpl"),
    known(Producer::Xarray, "xarray", "DataArray"),
    known(Producer::Other, "builtins", "memoryview"),
    known(Producer::Time, "numpy", "datetime64"),
    known(Producer::Time, "numpy", "timedelta64"),
];

impl KnownClass {
    /// True for an object of exactly this class, once the class was met. Runs no Python code.
    fn is_class_of(&self, obj: &Bound<'_, PyAny>) -> bool {
        let class = obj.get_type_ptr().addr();
        self.class.get(obj.py()).is_some_and(|known| known.as_ptr().addr() == class)
    }

    /// The class, if its module is imported and has it.
    pub(super) fn class<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyType>>> {
        if let Some(class) = self.class.get(py) {
            return Ok(Some(class.bind(py).clone()));
        }
        // SAFETY: with the interpreter attached.
        let modules = unsafe { ffi::PyImport_GetModuleDict() };
        // SAFETY: the dict of the modules that are imported, which the interpreter holds.
        let modules = unsafe { Bound::from_borrowed_ptr(py, modules) };
        let Some(module) = modules.cast_into::<PyDict>()?.get_item(self.module)? else {
            return Ok(None);
        };
        // Read from the module's dict, which loads no lazy module and runs no __getattr__.
        let Ok(module) = module.cast_into::<PyModule>() else { return Ok(None) };
        let found = module.dict().get_item(self.name)?;
        let found = found.and_then(|class| class.cast_into::<PyType>().ok());
        if let Some(class) = &found {
            // Another thread may have been first; it found the same class.
            let _ = self.class.set(py, class.clone().unbind());
        }
        Ok(found)
    }
}

impl Recognised {
    /// Recognises an object that is exactly of a class that was met before. Runs no Python code.
    pub(super) fn met(obj: &Bound<'_, PyAny>) -> Option<Self> {
        let known = KNOWN.iter().find(|known| known.is_class_of(obj));
        known.map(|known| Self { producer: known.producer, exactly: true })
    }

    /// True if the object is an array of exactly a class whose protocols are known.
    pub(super) fn is_array(self) -> bool {
        self.exactly && !matches!(self.producer, Producer::Xarray | Producer::Storage)
    }

    /// True for an object of exactly this producer's class.
    pub(super) fn is_exactly(self, producer: Producer) -> bool {
        self.exactly && self.producer == producer
    }

    /// True if an object of the class may have attributes of GT4Py's besides its protocols.
    pub(super) fn has_attributes(self) -> bool {
        !self.exactly && self.producer != Producer::Xarray
    }

    /// Recognises an object by its class.
    #[inline]
    pub(super) fn new(obj: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(known) = Self::met(obj) {
            return Ok(known);
        }
        if class::read(obj).is_some() {
            return Ok(Self { producer: Producer::Storage, exactly: true });
        }
        let (py, class) = (obj.py(), obj.get_type());
        for known in &KNOWN {
            if let Some(base) =
                known.class(py)?.filter(|base| obj.is_instance(base).unwrap_or(false))
            {
                return Ok(Self { producer: known.producer, exactly: base.is(&class) });
            }
        }
        Ok(Self { producer: by_module(&class)?, exactly: false })
    }
}

/// True for a `numpy.ndarray`, except subclasses; also for the first one.
pub(crate) fn is_plain_ndarray(obj: &Bound<'_, PyAny>) -> bool {
    let [_, numpy, ..] = &KNOWN;
    let met = numpy.class.get(obj.py()).is_some() || numpy.class(obj.py()).is_ok();
    met && numpy.is_class_of(obj)
}

/// True if the library of an array wants to know when its memory is written: torch does.
pub(crate) fn is_noted(array: &Bound<'_, PyAny>) -> bool {
    let [_, _, torch, ..] = &KNOWN;
    let class = torch.class.get(array.py()).filter(|_| !is_plain_ndarray(array));
    class.is_some_and(|class| array.is_instance(class.bind(array.py())).unwrap_or(false))
}

/// Tells the library of an array that its memory was written, if it wants to know.
///
/// # Errors
/// Exceptions of the library.
pub(crate) fn note_written(array: &Bound<'_, PyAny>) -> PyResult<()> {
    if is_noted(array) { lazy::note_written(array) } else { Ok(()) }
}

/// True for a `torch.Tensor`, except subclasses.
pub(crate) fn is_plain_tensor(obj: &Bound<'_, PyAny>) -> bool {
    let [_, _, torch, ..] = &KNOWN;
    torch.is_class_of(obj)
}

fn is_named(class: &Bound<'_, PyAny>, names: &[&str]) -> PyResult<bool> {
    let name: String = class.getattr(intern!(class.py(), "__name__"))?.extract()?;
    Ok(names.contains(&name.as_str()))
}

fn by_module(class: &Bound<'_, PyType>) -> PyResult<Producer> {
    for base in class.mro().iter() {
        // A class may lie about its module, or have none.
        let module = base.getattr_opt(intern!(class.py(), "__module__"))?;
        let module = module.and_then(|module| module.extract::<String>().ok());
        match module.as_deref().and_then(|module| module.split('.').next()) {
            Some("jaxlib" | "jax") => return Ok(Producer::Jax),
            Some("pyarrow") => return Ok(Producer::Arrow),
            Some("pandas") => return Ok(Producer::Pandas),
            // Also of an xarray that was imported anew.
            Some("xarray") if is_named(base.as_any(), &["DataArray", "Variable"])? => {
                return Ok(Producer::Xarray);
            }
            Some("ndsl") if is_named(base.as_any(), &["Quantity"])? => {
                return Ok(Producer::Quantity);
            }
            _ => {}
        }
    }
    Ok(Producer::Other)
}

impl Producer {
    pub(super) fn is_immutable(self) -> bool {
        matches!(self, Self::Jax | Self::Arrow)
    }

    /// The term of a message for a read-only array of this producer that came through a door.
    pub(super) fn readonly_kind(self, door: &str) -> &'static str {
        match self {
            Self::Jax => "an immutable JAX array",
            Self::Arrow => "immutable Arrow data",
            _ if door == "arrow" => "immutable Arrow data",
            _ => "a read-only array",
        }
    }

    /// True if its `__dlpack__` explains better than any other door why an array is refused.
    pub(super) fn explains_itself(self) -> bool {
        matches!(self, Self::Torch | Self::Jax)
    }

    /// Refuses, before any door is tried, arrays that its doors would refuse with less help. Returns
    /// another object over the same memory if the doors are to be asked of that one.
    pub(super) fn refuse_first<'py>(
        self,
        obj: &Bound<'py, PyAny>,
    ) -> Result<Option<Bound<'py, PyAny>>, Failure> {
        match self {
            Self::Torch => {
                recorded::check(obj, is_plain_tensor(obj))?;
                lazy::without_gradient(obj, is_plain_tensor(obj))
            }
            Self::Masked => refuse_masked(obj).map(|()| None),
            Self::Time => Err(time_refused("a time").into()),
            _ => Ok(None),
        }
    }

    /// The refusal of an array by a door, in clearer words if there are any.
    pub(super) fn explained(self, obj: &Bound<'_, PyAny>, failure: Failure) -> Failure {
        let dtype = || obj.getattr(intern!(obj.py(), "dtype")).ok();
        let time = |dtype: &Bound<'_, PyAny>| {
            let kind = dtype.getattr(intern!(dtype.py(), "kind")).ok();
            kind.is_some_and(|kind| matches!(kind.extract::<char>(), Ok('m' | 'M')))
        };
        match self {
            Self::Numpy => match dtype().filter(time) {
                Some(dtype) => time_refused(&dtype.to_string()).into(),
                None => failure,
            },
            Self::Torch => recorded::batched(obj).unwrap_or(failure),
            _ => failure,
        }
    }

    /// Refuses an array whose memory is not its value, with the call that helps.
    pub(super) fn refuse_lazy(
        self,
        obj: &Bound<'_, PyAny>,
        managed: &Managed,
    ) -> Result<(), Failure> {
        match self {
            Self::Torch => lazy::refuse_lazy(obj, is_plain_tensor(obj), managed),
            _ => Ok(()),
        }
    }
}

/// A mask that hides nothing may be dropped, one that hides an element may not.
fn refuse_masked(obj: &Bound<'_, PyAny>) -> Result<(), Failure> {
    let mask = obj.getattr(intern!(obj.py(), "mask"))?;
    let dtype = mask.getattr_opt(intern!(obj.py(), "dtype"))?;
    if let Some(fields) = dtype.and_then(|dtype| dtype.getattr(intern!(obj.py(), "fields")).ok())
        && !fields.is_none()
    {
        return Ok(()); // the doors refuse fields
    }
    let numpy = obj.py().import(intern!(obj.py(), "numpy"))?;
    if !numpy.call_method1(intern!(obj.py(), "any"), (mask,))?.is_truthy()? {
        return Ok(());
    }
    let text = "masked array: expected values everywhere, got masked elements; pass x.filled(...), or \
                x.data as an output";
    Err(Error::Buffer(text.into()).into())
}

fn time_refused(got: &str) -> Error {
    Error::Buffer(format!("dtype: expected numbers, got {got}; convert it with astype('int64')"))
}
