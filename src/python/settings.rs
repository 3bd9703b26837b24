//! What holds for the whole process: threads, huge pages, the pool.

use std::ffi::CString;
use std::num::NonZero;

use pyo3::exceptions::{PyOverflowError, PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::{alloc, copy, threads};

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    check_environment(module.py())?;
    // Now, and not in a thread without the interpreter: the environment may change there, or a fork happen.
    let _ = threads::num_threads();
    let _ = alloc::huge_pages();
    copy::settle();
    module.add_function(wrap_pyfunction!(get_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(get_huge_pages, module)?)?;
    module.add_function(wrap_pyfunction!(set_huge_pages, module)?)?;
    module.add_function(wrap_pyfunction!(get_pool_limit, module)?)?;
    module.add_function(wrap_pyfunction!(set_pool_limit, module)?)?;
    module.add_function(wrap_pyfunction!(pool_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(free_pool, module)?)
}

/// A variable that says nothing is better mended than passed over; an import fails for it only where warnings do.
fn check_environment(py: Python<'_>) -> PyResult<()> {
    let threads = threads::VARIABLE;
    let switch = alloc::HUGE_PAGES_VARIABLE;
    let wrong = |name: &str, fits: fn(&str) -> bool| {
        std::env::var(name)
            .ok()
            .filter(|text| !text.trim().is_empty() && !fits(text))
            .map(|text| (name.to_owned(), text))
    };
    let unread = [
        (wrong(threads, |text| threads::read(text).is_some()), "a number of at least 1"),
        (wrong(switch, |text| alloc::read_switch(text).is_some()), "0 or 1"),
    ];
    for (found, expected) in unread {
        let Some((name, text)) = found else { continue };
        let text = format!("{name}: expected {expected}, got {text:?}; it is not used");
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &CString::new(text)?, 1)?;
    }
    Ok(())
}

/// How many threads share a large copy or fill.
///
/// What `set_num_threads` said, else what the environment says in DLFIELD_NUM_THREADS or else in
/// OMP_NUM_THREADS, else the number of CPUs that the process may use.
#[pyfunction]
fn get_num_threads() -> usize {
    threads::num_threads()
}

/// Set how many threads share a large copy or fill, in the whole process.
///
/// Copies of less than 2 MiB for each thread take fewer. The threads are started for a copy and are gone after it.
/// ValueError for a number below 1.
#[pyfunction]
fn set_num_threads(num_threads: &Bound<'_, PyAny>) -> PyResult<()> {
    let threads = NonZero::new(number("num_threads", 1, num_threads)?);
    if let Some(threads) = threads {
        threads::set_num_threads(threads);
    }
    Ok(())
}

/// Whether large fields ask the system for huge pages.
///
/// What `set_huge_pages` said, else not where the environment's DLFIELD_HUGE_PAGES is 0, off, no or false.
#[pyfunction]
fn get_huge_pages() -> bool {
    alloc::huge_pages()
}

/// Set whether fields of 4 MiB and more that are allocated from now on ask the system for huge pages.
#[pyfunction]
fn set_huge_pages(enabled: bool) {
    alloc::set_huge_pages(enabled);
}

/// How many bytes of large fields that are gone are kept for the next ones; 0, the default, keeps none.
#[pyfunction]
fn get_pool_limit() -> usize {
    alloc::pool_limit()
}

/// Set how many bytes of large fields that are gone are kept for the next ones.
///
/// A field of 4 MiB or more that is neither zeros nor on a GPU then takes memory that is there already, which
/// spares the system's time for new pages. What is kept beyond the limit goes back to the system at once, the oldest
/// first. ValueError for a number below 0.
#[pyfunction]
fn set_pool_limit(py: Python<'_>, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
    let limit = number("bytes", 0, bytes)?;
    py.detach(|| alloc::set_pool_limit(limit));
    Ok(())
}

fn number(what: &str, least: usize, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = value.py();
    let refuse = |expected: String| {
        PyValueError::new_err(format!("{what}: expected {expected}, got {value}"))
    };
    match value.extract::<i64>() {
        Ok(number) => usize::try_from(number)
            .ok()
            .filter(|&number| number >= least)
            .ok_or_else(|| refuse(format!("at least {least}"))),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => Err(match value.gt(0)? {
            true => refuse(format!("at most {}", i64::MAX)),
            false => refuse(format!("at least {least}")),
        }),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            Err(PyTypeError::new_err(format!("{what}: expected an int, got {value:?}")))
        }
        Err(error) => Err(error), // what its __index__ raised
    }
}

/// Bytes that are kept for the next fields at the moment.
#[pyfunction]
fn pool_bytes(py: Python<'_>) -> usize {
    py.detach(alloc::pool_bytes)
}

/// Give all memory that is kept for the next fields back to the system. The limit stays.
#[pyfunction]
fn free_pool(py: Python<'_>) {
    py.detach(alloc::free_pool);
}
