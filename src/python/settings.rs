//! Settings of the whole process: threads, huge pages, the pool.

use std::ffi::CString;
use std::num::NonZero;

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::{Error, Failure, quoted};
use crate::protocol::read::{int, shown};
use crate::{alloc, copy, threads};

/// Reads the environment now: later it may change in a thread without the GIL, or by a fork.
pub(crate) fn settle(py: Python<'_>) -> PyResult<()> {
    check_environment(py)?;
    let _ = threads::num_threads();
    let _ = alloc::huge_pages();
    copy::settle();
    Ok(())
}

/// Warns of variables that cannot be read.
fn check_environment(py: Python<'_>) -> PyResult<()> {
    type Fits = fn(&str) -> bool;
    let variables: [(&str, Fits, &str); 3] = [
        (threads::VARIABLE, |text| threads::read(text).is_some(), "a number of at least 1"),
        (alloc::HUGE_PAGES_VARIABLE, |text| alloc::read_switch(text).is_some(), "0 or 1"),
        (copy::VARIABLE, |text| copy::read_way(text).is_some(), "learn, past or through"),
    ];
    for (name, fits, expected) in variables {
        let text = std::env::var(name).unwrap_or_default();
        if !text.trim().is_empty() && !fits(&text) {
            let text =
                format!("{name}: expected {expected}, got {}; it is not used", quoted(&text));
            PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &CString::new(text)?, 1)?;
        }
    }
    Ok(())
}

/// Return the number of threads that share a large copy or fill.
///
/// It is set by `set_num_threads`, else by the environment variable DLFIELD_NUM_THREADS, else by
/// OMP_NUM_THREADS, else it is the number of CPUs that the process may use.
#[pyfunction]
pub(crate) fn get_num_threads() -> usize {
    threads::num_threads()
}

/// Set the number of threads that share a large copy or fill, for the whole process.
///
/// A copy uses fewer threads if each would copy less than 2 MiB. Threads live as long as the copy.
///
/// Raises
/// ------
/// ValueError
///     For a number below 1.
#[pyfunction]
pub(crate) fn set_num_threads(num_threads: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Some(threads) = NonZero::new(at_least(1, "num_threads", num_threads)?) {
        threads::set_num_threads(threads);
    }
    Ok(())
}

/// Return whether large fields ask the system for huge pages.
///
/// Set by `set_huge_pages`; by default True, unless the environment variable DLFIELD_HUGE_PAGES is 0,
/// off, no or false.
#[pyfunction]
pub(crate) fn get_huge_pages() -> bool {
    alloc::huge_pages()
}

/// Set whether new fields of 4 MiB and more ask the system for huge pages.
#[pyfunction]
pub(crate) fn set_huge_pages(enabled: bool) {
    alloc::set_huge_pages(enabled);
}

/// Return how many bytes of freed large fields are kept for new ones; 0, the default, keeps none.
#[pyfunction]
pub(crate) fn get_pool_limit() -> usize {
    alloc::pool_limit()
}

/// Set how many bytes of freed large fields are kept for new ones.
///
/// A new field of 4 MiB or more then reuses such memory, unless it is on a GPU or made by `zeros`,
/// which saves the time to map new pages. Memory beyond the limit goes back to the system at once, the
/// oldest first.
///
/// Raises
/// ------
/// ValueError
///     For a number below 0.
#[pyfunction]
pub(crate) fn set_pool_limit(py: Python<'_>, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
    let limit = at_least(0, "bytes", bytes)?;
    py.detach(|| alloc::set_pool_limit(limit));
    Ok(())
}

fn at_least(least: usize, what: &str, value: &Bound<'_, PyAny>) -> Result<usize, Failure> {
    let number = usize::try_from(int(what, value)?).ok().filter(|&number| number >= least);
    number.ok_or_else(|| {
        let got = shown(value);
        Error::Argument(format!("{what}: expected at least {least}, got {got}")).into()
    })
}

/// Return how many bytes are kept for new fields at the moment.
#[pyfunction]
pub(crate) fn pool_bytes(py: Python<'_>) -> usize {
    py.detach(alloc::pool_bytes)
}

/// Return all memory that is kept for new fields to the system. The limit stays.
#[pyfunction]
pub(crate) fn free_pool(py: Python<'_>) {
    py.detach(alloc::free_pool);
}

/// Return how large copies in host memory are made, and what this process has learnt about them.
///
/// The first copies between two layouts are written through the caches and past them by turns, and
/// later ones by the way that was faster. The environment variable DLFIELD_COPIES, "past" or
/// "through", fixes the way for all from 2 MiB on; smaller ones go through the caches.
///
/// Returns
/// -------
/// dict
///     "caches": "learn", "past" or "through"; "registers": their name on this processor; "threads":
///     as `get_num_threads`; and "learnt": a list of dicts, one for each pair of layouts, of the last
///     256 or so. Each has the "kind" ("whole", "rows", or "planes" that are transposed), the "bytes"
///     of a copy, the number of "copies", and the fastest of the last ones in bytes a second,
///     "through" and "past" the caches (None if there was none), and whether the next one goes past
///     them, "past_caches".
#[pyfunction]
pub(crate) fn copy_settings(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let settings = PyDict::new(py);
    let caches = match copy::fixed_way() {
        None => "learn",
        Some(true) => "past",
        Some(false) => "through",
    };
    settings.set_item("caches", caches)?;
    settings.set_item("registers", copy::registers())?;
    settings.set_item("threads", threads::num_threads())?;
    let learnt = PyList::empty(py);
    for one in copy::learnt() {
        learnt.append(told(py, &one)?)?;
    }
    settings.set_item("learnt", learnt)?;
    Ok(settings)
}

fn told<'py>(py: Python<'py>, one: &copy::Learnt) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("kind", one.kind)?;
    told.set_item("bytes", one.bytes)?;
    told.set_item("copies", one.copies)?;
    let [through, past] = one.speeds;
    told.set_item("through", through)?;
    told.set_item("past", past)?;
    told.set_item("past_caches", one.past_caches)?;
    Ok(told)
}
