//! Memory: which Rust type an element is.

use std::fmt;

use crate::dtype::DType;

/// A Rust type that is an element of a field.
///
/// Of bool there is none: a byte of memory that others write may be neither 0 nor 1, which a `bool` must not
/// be. [`Managed::reinterpret`](crate::Managed::reinterpret) gives such memory as `u8`.
///
/// # Safety
/// The type has the size of [`Element::DTYPE`]'s items, needs no more than their alignment, has no
/// padding, and every pattern of its bits is a value.
pub unsafe trait Element: Copy + Send + Sync + fmt::Debug + 'static {
    /// The type as storages name it.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),* $(,)?) => {$(
        // SAFETY: a number of the size that the name says, whose bits may be anything.
        unsafe impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements! {
    i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64,
    u8 => UInt8, u16 => UInt16, u32 => UInt32, u64 => UInt64,
    f32 => Float32, f64 => Float64,
}

#[cfg(feature = "ndarray")]
elements! {
    half::f16 => Float16, half::bf16 => BFloat16,
    num_complex::Complex<f32> => Complex64, num_complex::Complex<f64> => Complex128,
}

/// The bytes of a value.
pub(crate) fn bytes_of<T: Element>(value: &T) -> &[u8] {
    // SAFETY: a value without padding, of this size (Element).
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits<T: Element>() {
        assert_eq!(size_of::<T>(), T::DTYPE.itemsize(), "{}", T::DTYPE);
        assert!(align_of::<T>() <= T::DTYPE.alignment(), "{}", T::DTYPE);
    }

    #[test]
    fn every_type_has_the_size_and_at_most_the_alignment_of_its_name() {
        fits::<i8>();
        fits::<i16>();
        fits::<i32>();
        fits::<i64>();
        fits::<u8>();
        fits::<u16>();
        fits::<u32>();
        fits::<u64>();
        fits::<f32>();
        fits::<f64>();
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn so_have_the_types_of_other_crates() {
        fits::<half::f16>();
        fits::<half::bf16>();
        fits::<num_complex::Complex<f32>>();
        fits::<num_complex::Complex<f64>>();
    }
}
