//! Columns of Arrow with any metadata: a column is refused, or gives a storage that goes out and
//! comes in again with the same shape, names and halo.
#![no_main]

use std::collections::HashMap;
use std::sync::Arc;

use arbitrary::{Arbitrary, Result, Unstructured};
use dlfield::Storage;
use dlfield::arrow_array::{Array, ArrayRef, FixedSizeListArray, Float64Array};
use dlfield::arrow_schema::{DataType, Field as Column};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    #[arbitrary(with = small)]
    rows: i32,
    /// None for numbers, else lists of so many.
    #[arbitrary(with = width)]
    width: Option<i32>,
    name: &'a str,
    extension: Option<&'a str>,
    tensor: Option<&'a str>,
    field: Option<&'a str>,
}

fn small(input: &mut Unstructured<'_>) -> Result<i32> {
    input.int_in_range(0..=12)
}

fn width(input: &mut Unstructured<'_>) -> Result<Option<i32>> {
    if input.arbitrary()? { small(input).map(Some) } else { Ok(None) }
}

fn array(rows: i32, width: Option<i32>) -> ArrayRef {
    let numbers = (0..rows * width.unwrap_or(1)).map(f64::from);
    let numbers: ArrayRef = Arc::new(Float64Array::from_iter_values(numbers));
    let Some(width) = width else { return numbers };
    let item = Arc::new(Column::new("item", DataType::Float64, false));
    let length = usize::try_from(rows).unwrap_or(0);
    let lists = FixedSizeListArray::try_new_with_length(item, width, numbers, None, length);
    Arc::new(lists.expect("as many numbers as the lists need"))
}

fuzz_target!(|input: Input<'_>| {
    let array = array(input.rows, input.width);
    let metadata = [
        ("ARROW:extension:name", Some(input.extension.unwrap_or("arrow.fixed_shape_tensor"))),
        ("ARROW:extension:metadata", input.tensor),
        ("dlfield", input.field),
    ];
    let metadata: HashMap<_, _> = metadata
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())))
        .collect();
    let column = Column::new(input.name, array.data_type().clone(), false).with_metadata(metadata);
    let Ok(storage) = Storage::from_arrow(&array, &column) else { return };
    let values = usize::try_from(input.rows * input.width.unwrap_or(1)).unwrap_or(0);
    assert_eq!(storage.managed().layout().size(), values);
    let (out, column) = storage.to_arrow("again").expect("what came from Arrow goes there");
    let back = Storage::from_arrow(&out, &column).expect("what dlfield has written");
    assert_eq!((back.shape(), back.dims()), (storage.shape(), storage.dims()));
    assert_eq!(back.halo(), storage.halo());
});
