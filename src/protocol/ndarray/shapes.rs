//! Checks the shapes of the fields of a kernel together.

use crate::error::{Error, Result};

/// Checks that all fields, such as the arguments of a kernel, have the same shape. Call it before
/// indexing: with different shapes ndarray panics, in `par_planes_mut` on every thread.
///
/// # Errors
/// [`Error::Argument`] with the name of the first field that has another shape than the first.
///
/// # Example
///
/// ```
/// use dlfield::{Storage, same_shape};
/// use dlfield::ndarray::Ix2;
///
/// let (inp, out) = (Storage::builder([4, 3]).zeros::<f64>()?, Storage::builder([4, 2]).zeros::<f64>()?);
/// let (inp, out) = (inp.view::<f64, Ix2>()?, out.view_mut::<f64, Ix2>()?);
/// let error = same_shape([("inp", inp.shape()), ("out", out.shape())]).unwrap_err();
/// assert!(error.to_string().starts_with("argument 'out': expected shape [4, 3], as 'inp' has, got [4, 2]"));
/// # Ok::<(), dlfield::Error>(())
/// ```
pub fn same_shape<'a>(fields: impl IntoIterator<Item = (&'a str, &'a [usize])>) -> Result<()> {
    let mut fields = fields.into_iter();
    let Some((first, expected)) = fields.next() else { return Ok(()) };
    match fields.find(|&(_, shape)| shape != expected) {
        None => Ok(()),
        Some((name, got)) => Err(Error::Argument(format!(
            "argument '{name}': expected shape {expected:?}, as '{first}' has, got {got:?}; pass \
             fields of one shape"
        ))),
    }
}
