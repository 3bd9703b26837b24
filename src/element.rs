//! Memory: Rust types of elements.

use std::fmt;

use crate::dtype::DType;

/// A Rust type that is an element of a field.
///
/// `bool` is not one of them: others may write bytes other than 0 and 1, which a `bool` must not
/// hold. [`Managed::reinterpret`](crate::Managed::reinterpret) turns such memory into `u8`.
///
/// # Safety
/// The type has the size of [`Element::DTYPE`], at most its alignment, and no padding. Every bit
/// pattern is a valid value.
pub unsafe trait Element: Copy + Send + Sync + fmt::Debug + 'static {
    /// The element type of storages.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),* $(,)?) => {$(
        // SAFETY: a number without padding; any bits are valid. A test compares its size and
        // alignment.
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
    // SAFETY: `value` is valid for reads of its size, and Element types have no padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! assert_fits {
        ($($type:ty),*) => {$(
            let dtype = <$type>::DTYPE;
            assert_eq!(size_of::<$type>(), dtype.itemsize(), "{dtype}");
            assert!(align_of::<$type>() <= dtype.alignment(), "{dtype}");
        )*};
    }

    #[test]
    fn every_type_has_the_size_and_at_most_the_alignment_of_its_dtype() {
        assert_fits!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn types_of_other_crates_do_too() {
        use num_complex::Complex;
        assert_fits!(half::f16, half::bf16, Complex<f32>, Complex<f64>);
    }
}
