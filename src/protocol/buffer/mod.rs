//! Door: the buffer protocol (PEP 3118), for host memory.
//!
//! - `import` asks for a writable view, then for a read-only one, and holds it until the last
//!   storage over it is dropped. Holding it keeps a bytearray or mmap from being resized.
//! - `ndarray` reads and makes NumPy arrays without a view.
//! - `export` fills a view whose strides are its own. Types that PEP 3118 cannot name (bfloat16,
//!   float8) have no buffer.

mod ndarray;
mod import;
mod export;

pub(crate) use export::{ByteView, fill_view};
pub(crate) use import::PyView;
pub(in crate::protocol) use import::import;
pub(crate) use ndarray::{ArrayForm, array_over, shape_and_dtype};
