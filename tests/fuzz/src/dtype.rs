//! Type strings: a typestr or a format of any text is refused, or names a type that has this size
//! and reads its own spelling.
#![no_main]

use dlfield::DType;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, usize)| {
    let (text, itemsize) = input;
    if let Ok(dtype) = DType::from_format(text, itemsize) {
        assert_eq!(dtype.itemsize(), itemsize, "{text}");
    }
    if let Ok(dtype) = DType::from_typestr(text) {
        let spelling = dtype.typestr().expect("a type that a typestr names has a typestr");
        assert_eq!(DType::from_typestr(&spelling), Ok(dtype), "{text}");
    }
});
