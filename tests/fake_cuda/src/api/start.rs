//! Start, version, look-up of functions, and texts of errors.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use crate::ffi::{In, Out};
use crate::run::{answer_always, initialise};
use crate::status::{Outcome, Status};

/// CUDA 13.0, the driver of the machine for tests with a GPU.
const VERSION: c_int = 13_000;
/// Maximum number of versions of a function.
const NEWEST: u32 = 4;
const PER_THREAD_STREAMS: u64 = 2;
const FOUND: c_uint = 0;
const NOT_FOUND: c_uint = 1;

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: c_uint) -> Status {
    answer_always(|| if flags == 0 { initialise() } else { Err(Status::INVALID_VALUE) })
}

#[unsafe(no_mangle)]
extern "C" fn cuDriverGetVersion(version: Out<c_int>) -> Status {
    answer_always(|| version.put(VERSION))
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(error: Status, name: Out<*const c_char>) -> Status {
    answer_always(|| match error.words() {
        Some((word, _)) => name.put(word.as_ptr()),
        None => name.put(ptr::null()).and(Err(Status::INVALID_VALUE)),
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(error: Status, text: Out<*const c_char>) -> Status {
    answer_always(|| match error.words() {
        Some((_, words)) => text.put(words.as_ptr()),
        None => text.put(ptr::null()).and(Err(Status::INVALID_VALUE)),
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuGetProcAddress(
    name: In<c_char>,
    function: Out<*mut c_void>,
    version: c_int,
    flags: u64,
) -> Status {
    answer_always(|| {
        let found = look_up(&name.text()?, version, flags)?;
        function.put(found)?;
        if found.is_null() { Err(Status::NOT_FOUND) } else { Ok(()) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuGetProcAddress_v2(
    name: In<c_char>,
    function: Out<*mut c_void>,
    version: c_int,
    flags: u64,
    result: Out<c_uint>,
) -> Status {
    answer_always(|| {
        let found = look_up(&name.text()?, version, flags)?;
        function.put(found)?;
        result.offer(if found.is_null() { NOT_FOUND } else { FOUND });
        if found.is_null() { Err(Status::NOT_FOUND) } else { Ok(()) }
    })
}

/// The newest version of a function by its bare name; null if this library lacks it.
fn look_up(name: &str, version: c_int, flags: u64) -> Outcome<*mut c_void> {
    if flags & PER_THREAD_STREAMS != 0 {
        // A flag for functions with another default stream, which are missing here.
        return Err(Status::NOT_SUPPORTED);
    }
    if !name.starts_with("cu") {
        return Ok(ptr::null_mut());
    }
    // Before CUDA 12, the look-up itself had one argument less.
    let newest = if name == "cuGetProcAddress" && version < 12_000 { 1 } else { NEWEST };
    let versions = (2..=newest).rev().map(|number| format!("{name}_v{number}"));
    let mut found = versions.chain([name.to_owned()]).map(|name| symbol(&name));
    Ok(found.find(|found| !found.is_null()).unwrap_or(ptr::null_mut()))
}

/// Looks up a function in this very library: the process may have another driver.
fn symbol(name: &str) -> *mut c_void {
    let Ok(name) = CString::new(name) else {
        return ptr::null_mut();
    };
    // SAFETY: `name` ends with NUL, and `library` returns a handle or null.
    unsafe { libc::dlsym(library(), name.as_ptr()) }
}

fn library() -> *mut c_void {
    let mut here = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    let inside: extern "C" fn(c_uint) -> Status = cuInit;
    // SAFETY: `here` is valid for a write, and the address is a function of this library.
    unsafe { libc::dladdr(inside as *const c_void, &raw mut here) };
    // SAFETY: dladdr has set the file's name. NOLOAD finds a loaded library and loads nothing.
    unsafe { libc::dlopen(here.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD) }
}
