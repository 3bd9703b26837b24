//! [`DType`] lists the element types of storages. One table has the spelling of each type in
//! DLPack (code and bits), the array interface (`typestr`), PEP 3118 (`format`), and NumPy and
//! `ml_dtypes` (name). Every door looks up its spelling here, in both directions.

use std::ffi::CStr;
use std::fmt;

use crate::error::{Error, Result, shortened};

/// One row of the spelling table. `None` means that the protocol cannot express the type.
pub(super) struct Spelling {
    pub(super) dtype: DType,
    pub(super) code: u8,
    pub(super) bits: u8,
    pub(super) typestr: Option<&'static str>,
    pub(super) format: Option<&'static CStr>,
    pub(super) name: &'static str,
}

/// Declares the types, and the table of their spellings in the order of the variants.
macro_rules! dtypes {
    ($($dtype:ident($code:literal, $bits:literal, $typestr:expr, $format:expr, $name:literal),)*) => {
        /// The type of one element: one lane, a whole number of bytes, native byte order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the variants are the NumPy and ml_dtypes names")]
        pub enum DType {
            $($dtype,)*
        }

        pub(super) const SPELLINGS: [Spelling; 23] = [$(Spelling {
            dtype: DType::$dtype,
            code: $code,
            bits: $bits,
            typestr: $typestr,
            format: $format,
            name: $name,
        },)*];
    };
}

/// True if C's `long` has 8 bytes: NumPy then uses its format for 64-bit integers.
pub(super) const LONG_IS_64: bool = size_of::<std::ffi::c_long>() == 8;
const I64: &CStr = if LONG_IS_64 { c"l" } else { c"q" };
const U64: &CStr = if LONG_IS_64 { c"L" } else { c"Q" };

dtypes! {
    Bool(6, 8, Some("b1"), Some(c"?"), "bool"),
    Int8(0, 8, Some("i1"), Some(c"b"), "int8"),
    Int16(0, 16, Some("i2"), Some(c"h"), "int16"),
    Int32(0, 32, Some("i4"), Some(c"i"), "int32"),
    Int64(0, 64, Some("i8"), Some(I64), "int64"),
    UInt8(1, 8, Some("u1"), Some(c"B"), "uint8"),
    UInt16(1, 16, Some("u2"), Some(c"H"), "uint16"),
    UInt32(1, 32, Some("u4"), Some(c"I"), "uint32"),
    UInt64(1, 64, Some("u8"), Some(U64), "uint64"),
    Float16(2, 16, Some("f2"), Some(c"e"), "float16"),
    Float32(2, 32, Some("f4"), Some(c"f"), "float32"),
    Float64(2, 64, Some("f8"), Some(c"d"), "float64"),
    Complex64(5, 64, Some("c8"), Some(c"Zf"), "complex64"),
    Complex128(5, 128, Some("c16"), Some(c"Zd"), "complex128"),
    BFloat16(4, 16, None, None, "bfloat16"),
    Float8E3M4(7, 8, None, None, "float8_e3m4"),
    Float8E4M3(8, 8, None, None, "float8_e4m3"),
    Float8E4M3B11Fnuz(9, 8, None, None, "float8_e4m3b11fnuz"),
    Float8E4M3Fn(10, 8, None, None, "float8_e4m3fn"),
    Float8E4M3Fnuz(11, 8, None, None, "float8_e4m3fnuz"),
    Float8E5M2(12, 8, None, None, "float8_e5m2"),
    Float8E5M2Fnuz(13, 8, None, None, "float8_e5m2fnuz"),
    Float8E8M0Fnu(14, 8, None, None, "float8_e8m0fnu"),
}

/// The accepted types, for every refusal of another one.
pub(super) const ACCEPTED: &str = "expected bool, int8..int64, uint8..uint64, float16..float64, \
                                   complex64, complex128, bfloat16 or a float8 type in native byte \
                                   order";

impl DType {
    #[expect(clippy::indexing_slicing, reason = "the table has a row for every variant (dtypes!)")]
    pub(super) fn spelling(self) -> &'static Spelling {
        &SPELLINGS[self as usize]
    }

    /// Every type.
    #[cfg(feature = "python")]
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        SPELLINGS.iter().map(|row| row.dtype)
    }

    /// Size of one element in bytes: 1, 2, 4, 8 or 16.
    #[must_use]
    pub fn itemsize(self) -> usize {
        usize::from(self.spelling().bits / 8)
    }

    /// True if an element is a pair of real and imaginary part.
    #[must_use]
    pub fn is_complex(self) -> bool {
        matches!(self, Self::Complex64 | Self::Complex128)
    }

    /// Alignment in bytes that typed access to an element needs.
    #[must_use]
    pub fn alignment(self) -> usize {
        if self.is_complex() { self.itemsize() / 2 } else { self.itemsize() }
    }

    /// DLPack's `(code, bits)`; lanes are always 1.
    #[must_use]
    pub fn dlpack(self) -> (u8, u8) {
        (self.spelling().code, self.spelling().bits)
    }

    /// The NumPy or `ml_dtypes` name, as in `np.dtype(name)`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spelling().name
    }

    /// The array interface's `typestr` with its byte order, if it can express the type.
    #[must_use]
    pub fn typestr(self) -> Option<String> {
        let order = match (self.itemsize(), cfg!(target_endian = "little")) {
            (1, _) => '|',
            (_, true) => '<',
            (_, false) => '>',
        };
        self.spelling().typestr.map(|body| format!("{order}{body}"))
    }

    /// PEP 3118's native format, if it can express the type.
    #[must_use]
    pub fn format(self) -> Option<&'static CStr> {
        self.spelling().format
    }

    /// Looks up DLPack's triple.
    ///
    /// # Errors
    /// [`Error::Buffer`] for several lanes, opaque handles, sub-byte types and unknown codes.
    pub fn from_dlpack(code: u8, bits: u8, lanes: u16) -> Result<Self> {
        find(|row| row.code == code && row.bits == bits && lanes == 1).ok_or_else(|| {
            Error::Buffer(format!(
                "DLPack dtype: {ACCEPTED} with one lane, got code {code}, {bits} bits, {lanes} \
                 lanes; convert the array before handing it over"
            ))
        })
    }

    /// Looks up a NumPy or `ml_dtypes` name.
    ///
    /// # Errors
    /// [`Error::Argument`] for a type that no storage can hold.
    pub fn from_name(name: &str) -> Result<Self> {
        find(|row| row.name == name).ok_or_else(|| {
            let name = shortened(name);
            Error::Argument(format!("dtype: {ACCEPTED}, got {name}; choose one of these"))
        })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

pub(super) fn find(matches: impl Fn(&Spelling) -> bool) -> Option<DType> {
    SPELLINGS.iter().find(|row| matches(row)).map(|row| row.dtype)
}
