//! The package's class of storages, as the doors know it. The class stands above them, in the skin,
//! which registers it when the module is made.

use std::sync::OnceLock;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

use crate::storage::Storage;

/// A storage in an object, and the name of the door that it came through.
pub(crate) type Held<'a> = (&'a Storage, Option<&'static str>);

/// Functions on objects of the class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StorageClass {
    /// The storage in an object of the class; `None` for other objects.
    pub(crate) read: for<'a> fn(&'a Bound<'_, PyAny>) -> Option<Held<'a>>,
    /// A new object over a storage that came through a door.
    pub(crate) wrap: fn(Python<'_>, Storage, &'static str) -> PyResult<Py<PyAny>>,
}

static CLASS: OnceLock<StorageClass> = OnceLock::new();

/// Registers the class; later calls change nothing.
pub(crate) fn use_class(class: StorageClass) {
    let _the_first_stays = CLASS.set(class);
}

/// The storage in an object; `None` for objects of other classes.
pub(super) fn read<'a>(obj: &'a Bound<'_, PyAny>) -> Option<Held<'a>> {
    CLASS.get().and_then(|class| (class.read)(obj))
}

/// A new object of the class over a storage that came through a door.
///
/// # Errors
/// `ImportError` if no class is known, and what making an object raises.
pub(super) fn wrap(py: Python<'_>, storage: Storage, door: &'static str) -> PyResult<Py<PyAny>> {
    match CLASS.get() {
        Some(class) => (class.wrap)(py, storage, door),
        None => Err(PyImportError::new_err("storage: expected the package dlfield, got none")),
    }
}
