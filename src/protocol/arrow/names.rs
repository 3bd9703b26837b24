//! Arrow's names for types of elements, and keys of a field's metadata.

use arrow_schema::DataType;

use crate::dtype::DType;
use crate::field::Dim;

/// Key of the name of an extension type (Arrow columnar format, "Extension Types").
pub(super) const EXTENSION_NAME: &str = "ARROW:extension:name";
/// Key of the parameters of an extension type.
pub(super) const EXTENSION_METADATA: &str = "ARROW:extension:metadata";
/// Key of the properties that Arrow cannot express.
pub(super) const DLFIELD: &str = "dlfield";

/// A name for an unnamed axis, by which an import finds the order of the axes. Others do not write it.
pub(super) fn placeholder(axis: usize) -> Dim {
    Dim::from_name(&format!("dlfield_axis_{axis}"))
}

/// Lists of tensors of one shape (Arrow columnar format, "Canonical Extension Types").
pub(super) const FIXED_SHAPE_TENSOR: &str = "arrow.fixed_shape_tensor";
/// Booleans of one byte each, stored as int8.
pub(super) const BOOL8: &str = "arrow.bool8";

/// A type, its letter in the C data interface, and its name in arrow-rs.
const NAMES: [(DType, &str, DataType); 11] = [
    (DType::Int8, "c", DataType::Int8),
    (DType::Int16, "s", DataType::Int16),
    (DType::Int32, "i", DataType::Int32),
    (DType::Int64, "l", DataType::Int64),
    (DType::UInt8, "C", DataType::UInt8),
    (DType::UInt16, "S", DataType::UInt16),
    (DType::UInt32, "I", DataType::UInt32),
    (DType::UInt64, "L", DataType::UInt64),
    (DType::Float16, "e", DataType::Float16),
    (DType::Float32, "f", DataType::Float32),
    (DType::Float64, "g", DataType::Float64),
];

/// Arrow's type for a dtype, if there is one.
pub(super) fn data_type(dtype: DType) -> Option<DataType> {
    NAMES.into_iter().find(|one| one.0 == dtype).map(|one| one.2)
}

/// The dtype of a format.
pub(super) fn dtype_from_format(format: &str) -> Option<DType> {
    NAMES.iter().find(|one| one.1 == format).map(|one| one.0)
}

/// Describes any other format, with a way out.
pub(super) fn refusal(format: &str) -> (&'static str, &'static str) {
    let first = |count| format.get(..count).unwrap_or_default();
    match (first(1), first(2)) {
        ("b", _) => ("booleans of a bit each", "cast them to uint8, or to bool8 of a byte each"),
        ("u" | "U" | "z" | "Z" | "v" | "w", _) => ("text or bytes", "select a column of numbers"),
        ("d", _) => ("decimals", "cast them to float64"),
        ("t", _) => ("times", "cast them to int64"),
        ("n", _) => ("nulls alone", "select a column of numbers"),
        (_, "+u") => ("a union", "select a column of numbers"),
        (_, "+l" | "+L" | "+v") => ("lists of any length", "cast them to lists of a fixed size"),
        (_, "+r") => ("run lengths", "decode them first"),
        (_, "+m") => ("a map", "select a column of numbers"),
        _ => ("a format that dlfield does not know", "cast it to a type of numbers"),
    }
}
