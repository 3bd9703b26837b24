//! Converts storages to and from arrays of arrow-rs.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, RecordBatch, make_array};
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{Field as Column, FieldRef as ColumnRef, Schema};

use super::export::{Exported, invalid_name};
use super::import::take;
use crate::borrow::Borrow;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::storage::{Spec, Storage};

impl Storage {
    /// Returns the array over the host's memory, and the column `name` that describes it. Copies
    /// nothing.
    ///
    /// A storage of one dimension becomes an array of numbers (bool: the extension `arrow.bool8`).
    /// Others become the extension `arrow.fixed_shape_tensor`: a list along the axis that is
    /// outermost in memory, of tensors of the other axes. The metadata of the column has all other
    /// properties, under the key `dlfield`.
    ///
    /// Arrow's arrays are constant: while one of them lives,
    /// [`Storage::view_mut`](crate::Storage::view_mut) refuses the memory.
    ///
    /// # Errors
    /// [`Error::Buffer`] for padded rows, steps and negative strides, for bfloat16, float8, complex
    /// numbers and bool in several dimensions, for storages without dimensions, and while a view
    /// writes the memory; [`Error::Device`] for device memory.
    ///
    /// # Example
    ///
    /// ```
    /// use dlfield::Storage;
    ///
    /// let halo = [(1, 1), (0, 0), (0, 0)];
    /// let field = Storage::builder([4, 3, 2]).dims(["I", "J", "K"]).halo(halo).zeros::<f64>()?;
    /// let (array, column) = field.to_arrow("t")?;
    /// assert_eq!(array.len(), 4); // of tensors with 3 x 2 elements
    /// assert_eq!(column.metadata()["ARROW:extension:name"], "arrow.fixed_shape_tensor");
    ///
    /// let back = Storage::from_arrow(&array, &column)?;
    /// assert_eq!(back.managed().address(), field.managed().address());
    /// assert_eq!(back.field().halo, field.field().halo);
    /// # Ok::<(), dlfield::Error>(())
    /// ```
    pub fn to_arrow(&self, name: &str) -> Result<(ArrayRef, ColumnRef)> {
        let (memory, field) = (self.host()?.clone(), self.field());
        let exported = Exported::new(&memory, &field)?;
        let column = exported.column(name)?;
        let borrow = Borrow::shared(&memory)?;
        memory.wait()?; // for an earlier copy
        // Dropped in this order, so that the borrow ends before the memory may be reused.
        Ok((make_array(exported.data(|memory| (borrow, memory))?), Arc::new(column)))
    }

    /// Returns a table with the single column `name` over the host's memory. Copies nothing. The
    /// metadata, which files keep, has all properties of the field.
    ///
    /// # Errors
    /// As [`Storage::to_arrow`].
    pub fn to_arrow_batch(&self, name: &str) -> Result<RecordBatch> {
        let (array, column) = self.to_arrow(name)?;
        RecordBatch::try_new(Arc::new(Schema::new(vec![column])), vec![array]).map_err(invalid_name)
    }

    /// Wraps an array of numbers, lists of fixed length or tensors in a read-only storage, which
    /// keeps the array alive. Copies nothing. Names, halo and the order of the axes come from the
    /// metadata of `column`.
    ///
    /// # Errors
    /// [`Error::Buffer`] for nulls, and for types that [`Storage::to_arrow`] does not return;
    /// [`Error::Argument`] if `column` describes another type.
    pub fn from_arrow(array: &ArrayRef, column: &Column) -> Result<Self> {
        if array.data_type() != column.data_type() {
            return Err(Error::Argument(format!(
                "column: expected the type of the array, {}, got {}",
                array.data_type(),
                column.data_type()
            )));
        }
        let schema = FFI_ArrowSchema::try_from(column).map_err(invalid_name)?;
        let mut array = FFI_ArrowArray::new(&array.to_data());
        let (checked, labels) = take(&schema, &mut array, Device::CPU)?;
        let memory = checked.validate(false)?;
        let field = labels.into_field(memory.layout().shape());
        Self::wrap(memory, &Spec { unknown_halo: field.halo.is_none(), field, ..Spec::default() })
    }

    /// As [`Storage::from_arrow`], for a table with one column.
    ///
    /// # Errors
    /// As [`Storage::from_arrow`]; [`Error::Argument`] for another number of columns.
    pub fn from_arrow_batch(batch: &RecordBatch) -> Result<Self> {
        match (batch.columns(), batch.schema().fields().as_ref()) {
            ([array], [column]) => Self::from_arrow(array, column),
            (columns, _) => Err(Error::Argument(format!(
                "batch: expected one column, got {}; select one with project",
                columns.len()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Float64Type;
    use arrow_array::{
        BooleanArray, FixedSizeListArray, Float64Array, Int32Array, StringArray, StructArray,
    };
    use arrow_schema::DataType;

    use super::*;
    use crate::field::Dim;
    use crate::layout::Item;

    fn field() -> Storage {
        let builder =
            Storage::builder([4, 3, 2]).dims(["I", "J", "K"]).halo([(1, 1), (0, 0), (0, 1)]);
        builder.layout([1, 2, 0]).zeros::<f64>().unwrap()
    }

    fn column(array: &ArrayRef) -> Column {
        Column::new("x", array.data_type().clone(), true)
    }

    fn refused(array: impl arrow_array::Array + 'static) -> String {
        let array: ArrayRef = Arc::new(array);
        Storage::from_arrow(&array, &column(&array)).unwrap_err().to_string()
    }

    #[test]
    fn a_field_comes_back_as_it_was() {
        let field = field();
        let batch = field.to_arrow_batch("t").unwrap();
        assert_eq!((batch.num_rows(), batch.schema().field(0).name().as_str()), (2, "t"));
        let back = Storage::from_arrow_batch(&batch).unwrap();
        let (one, other) = (field.managed(), back.managed());
        assert_eq!((one.address(), one.layout()), (other.address(), other.layout()));
        assert_eq!(
            (&field.field().dims, &field.field().halo),
            (&back.field().dims, &back.field().halo)
        );
        assert!(other.readonly());
    }

    #[test]
    fn a_part_of_the_list_has_an_unknown_halo() {
        let batch = field().to_arrow_batch("t").unwrap();
        let part = Storage::from_arrow_batch(&batch.slice(1, 1)).unwrap();
        assert_eq!(part.managed().layout().shape(), [4, 3, 1]);
        assert_eq!(part.field().halo, None);
        assert!(part.field().dims.is_some());
    }

    #[test]
    fn without_dlfield_s_metadata_the_list_comes_first_and_gets_a_new_name() {
        let (array, column) = field().to_arrow("t").unwrap();
        let mut metadata = column.metadata().clone();
        metadata.remove("dlfield");
        let column = Column::clone(&column).with_metadata(metadata);
        let back = Storage::from_arrow(&array, &column).unwrap();
        assert_eq!(back.managed().layout().shape(), [2, 4, 3]);
        let names = ["dim_0", "I", "J"].map(Dim::from_name);
        assert_eq!(back.field().dims.as_deref(), Some(&names[..]));
    }

    #[test]
    fn axes_of_an_unnamed_field_keep_their_order_without_metadata_of_dlfield() {
        let field = Storage::builder([4, 3, 2]).layout([2, 1, 0]).zeros::<f64>().unwrap();
        let (array, column) = field.to_arrow("t").unwrap();
        let back = Storage::from_arrow(&array, &column).unwrap();
        assert_eq!((back.shape(), back.dims()), (field.shape(), None));
        let mut metadata = column.metadata().clone();
        metadata.remove("dlfield");
        let bare = Column::clone(&column).with_metadata(metadata);
        let back = Storage::from_arrow(&array, &bare).unwrap();
        assert_eq!((back.shape(), back.dims()), (field.shape(), None));
    }

    #[test]
    fn the_memory_is_freed_with_the_last_array() {
        let field = field();
        let memory = field.managed().owner();
        let (array, _) = field.to_arrow("t").unwrap();
        let part = array.slice(1, 1);
        drop((field, array));
        assert_eq!(memory.count(), 2);
        drop(part);
        assert_eq!(memory.count(), 1);
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn memory_in_an_array_cannot_be_written() {
        let field = field();
        let (array, _) = field.to_arrow("t").unwrap();
        let error = field.view_mut::<f64, ndarray::Ix3>().unwrap_err().to_string();
        assert!(error.contains("being read through another view"), "{error}");
        drop(array);
        let writer = field.view_mut::<f64, ndarray::Ix3>().unwrap();
        assert!(field.to_arrow("t").is_err());
        drop(writer);
    }

    #[test]
    fn offsets_of_an_array_and_of_lists_in_it_are_added() {
        let whole = Int32Array::from(vec![0, 1, 2, 3]);
        let first = whole.values().as_ptr().addr();
        let array: ArrayRef = Arc::new(whole.slice(1, 2));
        let part = Storage::from_arrow(&array, &column(&array)).unwrap();
        assert_eq!(part.managed().address(), first + 4);
        assert_eq!(part.managed().layout().shape(), [2]);

        let rows = (0..4).map(|row| Some((0..3).map(move |at| Some(f64::from(10 * row + at)))));
        let lists = FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(rows, 3);
        let values = lists.values().to_data().buffers()[0].as_ptr().addr();
        let lists = lists.slice(2, 2);
        let lists: ArrayRef = Arc::new(lists);
        let part = Storage::from_arrow(&lists, &column(&lists)).unwrap();
        assert_eq!(part.managed().layout().shape(), [2, 3]);
        assert_eq!(part.managed().address(), values + 6 * 8);
    }

    #[test]
    fn anything_but_a_column_of_numbers_is_refused_with_a_way_out() {
        assert!(
            refused(Float64Array::from(vec![Some(1.0), None]))
                .contains("got 1 nulls; fill or drop them")
        );
        assert!(
            refused(BooleanArray::from(vec![true]))
                .contains("a bit each (format 'b'); cast them to uint8")
        );
        assert!(refused(StringArray::from(vec!["x"])).contains("text or bytes"));
        let one: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        let two = ["a", "b"]
            .map(|name| (Arc::new(Column::new(name, DataType::Int32, true)), one.clone()));
        assert!(
            refused(StructArray::from(two.to_vec()))
                .contains("expected one column, got 2 ('a', 'b')")
        );
    }

    #[test]
    fn nulls_outside_of_the_part_are_ignored() {
        let array: ArrayRef =
            Arc::new(Float64Array::from(vec![None, Some(1.0), Some(2.0)]).slice(1, 2));
        assert!(Storage::from_arrow(&array, &column(&array)).is_ok());
    }

    #[test]
    fn gaps_and_inexpressible_types_are_refused() {
        let padded = Storage::builder([4, 5]).halo([(0, 0), (1, 1)]).zeros::<f64>().unwrap();
        let inner = padded.domain_view().unwrap();
        let error = inner.to_arrow("t").unwrap_err().to_string();
        assert!(
            error.contains("follow each other in memory") && error.contains("copy=True"),
            "{error}"
        );
        let step = [Item::Slice { start: None, stop: None, step: Some(2) }];
        let thin = Storage::builder([8]).zeros::<f64>().unwrap().select(&step).unwrap();
        assert!(thin.to_arrow("t").is_err());
        let empty = Storage::builder([0_i64; 0]).zeros::<f64>().unwrap();
        assert!(empty.to_arrow("t").unwrap_err().to_string().contains("at least 1 dimension"));
    }
}
