//! Every spelling in the table is read back, and any other is refused.

use super::table::{DType, SPELLINGS};

#[test]
fn every_spelling_is_read_back_as_its_type() {
    for row in &SPELLINGS {
        let dtype = row.dtype;
        assert_eq!(dtype.spelling().name, row.name, "rows are in the order of the variants");
        assert_eq!(DType::from_dlpack(row.code, row.bits, 1), Ok(dtype));
        assert_eq!(DType::from_name(row.name), Ok(dtype));
        if let Some(text) = dtype.typestr() {
            assert_eq!(DType::from_typestr(&text), Ok(dtype));
        }
        if let Some(format) = dtype.format() {
            let format = format.to_str().unwrap();
            assert_eq!(DType::from_format(format, dtype.itemsize()), Ok(dtype));
        }
    }
}

#[test]
fn standard_and_native_long_differ_in_size() {
    assert_eq!(DType::from_format("<l", 4), Ok(DType::Int32));
    assert_eq!(DType::from_format("l", size_of::<std::ffi::c_long>()), Ok(DType::Int64));
    assert!(DType::from_format("=l", 8).is_err());
}

#[test]
fn byte_swapped_items_are_refused_but_single_bytes_have_no_order() {
    let foreign = if cfg!(target_endian = "little") { '>' } else { '<' };
    let error = DType::from_typestr(&format!("{foreign}f8")).unwrap_err();
    assert!(error.to_string().contains("byte-swapped"), "{error}");
    assert!(DType::from_format(&format!("{foreign}i"), 4).is_err());
    assert_eq!(DType::from_format(&format!("{foreign}b"), 1), Ok(DType::Int8));
}

#[test]
fn a_bar_stands_for_native_order_as_in_numpy() {
    assert_eq!(DType::from_typestr("|i4"), Ok(DType::Int32));
    assert_eq!(DType::from_typestr("|u1"), Ok(DType::UInt8));
}

#[test]
fn structured_object_and_repeated_formats_are_refused() {
    for format in ["T{i:f0:=d:f1:}", "O", "2f", "(2,3)f", "P", "", ":a:f", "g", "é", "3s"] {
        assert!(DType::from_format(format, 8).is_err(), "{format}");
    }
    for text in ["|O8", "|V2", "<f16", "<M8[ns]", "", "<", "<x9", "<f", "f8"] {
        assert!(DType::from_typestr(text).is_err(), "{text}");
    }
}

#[test]
fn vectors_handles_and_packed_bits_are_refused() {
    for (code, bits, lanes) in
        [(2, 32, 4), (2, 32, 0), (3, 64, 1), (6, 1, 1), (0, 4, 1), (99, 8, 1), (5, 32, 1)]
    {
        assert!(DType::from_dlpack(code, bits, lanes).is_err());
    }
}
