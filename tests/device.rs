//! Storages on a GPU, without Python: on the stand-in for the CUDA driver, whose work is done only
//! when something waits for it. The threads of a process share the streams, and so wait for each
//! other's work: what looks at work in flight is one test.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::env;
use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use dlfield::{Managed, ManagedBy, Storage, Target};

/// `fake_cuda_reach`: the host's address of bytes of a device.
type Reach = unsafe extern "C" fn(u64, usize) -> *const c_void;

/// Loads the stand-in, once; the crate then gets the same library when it asks for the driver.
fn stand_in() -> Reach {
    static REACH: OnceLock<Reach> = OnceLock::new();
    *REACH.get_or_init(|| {
        let path = CString::new(built().into_os_string().into_encoded_bytes()).unwrap();
        // SAFETY: a path that ends in 0; loading the stand-in starts nothing.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        assert!(!library.is_null(), "expected the stand-in for the driver, got none at {path:?}");
        let name = c"fake_cuda_reach";
        // SAFETY: the library is loaded, and never unloaded; the name ends in 0.
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        assert!(!found.is_null(), "expected {name:?} in {path:?}");
        // SAFETY: the stand-in exports a function of this name and type.
        unsafe { std::mem::transmute::<*mut c_void, Reach>(found) }
    })
}

/// The library of the stand-in, which `make test` builds first.
fn built() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fake_cuda/target/release/libfake_cuda.so");
    let path = env::var_os("DLFIELD_FAKE_CUDA").map_or(built, PathBuf::from);
    assert!(
        path.is_file(),
        "expected the stand-in for the driver, got none; \
         cargo build --release --manifest-path tests/fake_cuda/Cargo.toml"
    );
    path
}

/// The values in the memory of a device as they are, with the work in flight not done.
fn as_they_are(memory: &Managed) -> [f32; 12] {
    let reach = stand_in();
    // SAFETY: the stand-in refuses, with null, what is not 48 bytes of a device.
    let found = unsafe { reach(memory.address() as u64, size_of::<[f32; 12]>()) };
    assert!(!found.is_null(), "expected memory of a device");
    // SAFETY: `reach` gives an address of 48 bytes that the host can read, aligned as on the
    // device. Work in flight is done when something waits, which nothing does meanwhile.
    unsafe { found.cast::<[f32; 12]>().read() }
}

#[test]
fn a_raw_tensor_over_device_memory_has_no_work_in_flight() {
    stand_in();
    let on_gpu =
        || Storage::builder([4, 3]).device(Target::Gpu(Some(0))).managed_by(ManagedBy::Nobody);
    let (field, values) = (on_gpu().zeros::<f32>().unwrap(), on_gpu().full(1.5_f32).unwrap());
    field.host_to_device(false).unwrap(); // only waits, for the zeros
    field.assign(&values).unwrap();
    assert_eq!(as_they_are(field.managed()), [0.0; 12], "the copy is still in flight");

    let tensor = field.to_dlpack().unwrap();
    assert_eq!(as_they_are(field.managed()), [1.5; 12]);
    drop(tensor);
}
