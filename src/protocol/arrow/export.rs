//! Producer: from a [`Managed`] to an array of arrow-rs and the field that describes it.

use std::collections::HashMap;
use std::panic::RefUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field as Column};

use super::metadata::{Tensor, Whole};
use super::names::{
    BOOL8, DLFIELD, EXTENSION_METADATA, EXTENSION_NAME, FIXED_SHAPE_TENSOR, data_type,
};
use super::rows::Rows;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::field::{Dim, Dims, Field};
use crate::layout::Extents;
use crate::managed::Managed;

/// Memory as Arrow sees it: which axis is the list, and what its elements are called.
#[derive(Debug)]
pub(super) struct Exported<'a> {
    managed: &'a Managed,
    field: &'a Field,
    rows: Rows,
    values: DataType,
}

/// What keeps the memory of an Arrow buffer.
struct Kept<T>(T);

// Nobody looks into it: it is only dropped.
impl<T> RefUnwindSafe for Kept<T> {}

impl<'a> Exported<'a> {
    /// # Errors
    /// [`Error::Buffer`] for what Arrow cannot express without a copy.
    pub(super) fn of(managed: &'a Managed, field: &'a Field) -> Result<Self> {
        let rows = Rows::of(managed.layout(), field.order.as_deref().unwrap_or_default())?;
        let dtype = managed.dtype();
        let truth = dtype == DType::Bool && rows.inner.is_empty();
        let values = if truth { Some(DataType::Int8) } else { data_type(dtype) };
        let values = values.ok_or_else(|| no_word(dtype))?;
        if !managed.is_aligned() {
            return Err(Error::Buffer(format!(
                "Arrow export: expected elements on boundaries of {} bytes, got address {:#x}; copy them first: \
                 to_arrow(copy=True), in Rust copy()",
                dtype.alignment(),
                managed.address()
            )));
        }
        Ok(Self { managed, field, rows, values })
    }

    /// Whether there are no elements.
    #[cfg(feature = "python")]
    pub(super) fn is_empty(&self) -> bool {
        self.managed.layout().nbytes() == 0
    }

    /// What may be in flight on the memory.
    #[cfg(feature = "python")]
    pub(super) fn timeline(&self) -> Option<&Arc<crate::cuda::Timeline>> {
        self.managed.timeline()
    }

    fn extent(&self, axis: usize) -> i64 {
        self.managed.layout().shape().get(axis).copied().unwrap_or(0)
    }

    fn inner_shape(&self) -> Extents {
        self.rows.inner.iter().map(|&axis| self.extent(axis)).collect()
    }

    fn dims_inside(&self) -> Option<Dims> {
        let name = |&axis: &usize| match &self.field.dims {
            Some(dims) => dims.get(axis).cloned(),
            // So that nobody takes the first axis of the list for the first of the field.
            None if self.rows.axis != 0 => Some(Dim::unnamed(axis)),
            None => None,
        };
        self.rows.inner.iter().map(name).collect()
    }

    /// Elements in a tensor of the list.
    fn size_inside(&self) -> Result<i32> {
        let size =
            self.inner_shape().iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent));
        size.and_then(|size| i32::try_from(size).ok()).ok_or_else(|| {
            Error::Buffer(format!(
                "Arrow export: expected at most {} elements in each tensor of the list, got shape {:?}; take parts of \
                 the storage",
                i32::MAX,
                self.managed.layout().shape()
            ))
        })
    }

    fn data_type(&self) -> Result<DataType> {
        if self.rows.inner.is_empty() {
            return Ok(self.values.clone());
        }
        let item = Column::new_list_field(self.values.clone(), true);
        Ok(DataType::FixedSizeList(Arc::new(item), self.size_inside()?))
    }

    /// The description of a column with this array.
    ///
    /// # Errors
    /// [`Error::Buffer`] for tensors that are too large for a list of Arrow's.
    pub(super) fn column(&self, name: &str) -> Result<Column> {
        let mut metadata = HashMap::from([(DLFIELD.to_owned(), self.whole().to_json())]);
        let extension = if self.rows.inner.is_empty() {
            (self.managed.dtype() == DType::Bool).then(|| (BOOL8, String::new()))
        } else {
            Some((FIXED_SHAPE_TENSOR, self.tensor().to_json()))
        };
        if let Some((name, parameters)) = extension {
            metadata.insert(EXTENSION_NAME.to_owned(), name.to_owned());
            metadata.insert(EXTENSION_METADATA.to_owned(), parameters);
        }
        // Nullable, as other libraries take a column to be: none of its elements is null.
        Ok(Column::new(name, self.data_type()?, true).with_metadata(metadata))
    }

    fn tensor(&self) -> Tensor {
        Tensor {
            shape: self.inner_shape(),
            dims: self.dims_inside(),
            permutation: self.rows.permutation(),
        }
    }

    fn whole(&self) -> Whole {
        let Field { dims, halo, origin, .. } = self.field;
        let shape = self.managed.layout().shape().into();
        Whole {
            shape,
            axis: self.rows.axis,
            dims: dims.clone(),
            halo: halo.clone(),
            origin: origin.clone(),
        }
    }

    /// The array over the same memory, which keeps it, and what `with_it` makes of it, as long as one of its
    /// buffers is there. May be memory of a device: nothing is read.
    ///
    /// # Errors
    /// As [`Exported::column`].
    pub(super) fn data<T: Send + Sync + 'static>(
        &self,
        with_it: impl FnOnce(Managed) -> T,
    ) -> Result<ArrayData> {
        let length = usize::try_from(self.extent(self.rows.axis)).unwrap_or(0);
        let values = self.buffer(with_it);
        if self.rows.inner.is_empty() {
            return Ok(self.checked(self.values.clone(), length, Some(values), None));
        }
        let size = usize::try_from(self.size_inside()?).unwrap_or(0);
        let child =
            self.checked(self.values.clone(), length.saturating_mul(size), Some(values), None);
        Ok(self.checked(self.data_type()?, length, None, Some(child)))
    }

    fn checked(
        &self,
        data_type: DataType,
        length: usize,
        values: Option<Buffer>,
        child: Option<ArrayData>,
    ) -> ArrayData {
        let builder = ArrayData::builder(data_type).len(length);
        let builder = builder.buffers(values.into_iter().collect());
        let builder = builder.child_data(child.into_iter().collect());
        // SAFETY: the buffer has as many elements as the layout has (Exported::buffer), on their boundaries
        // (Exported::of); a list has as many times its size; there are no nulls.
        unsafe { builder.build_unchecked() }
    }

    fn buffer<T: Send + Sync + 'static>(&self, with_it: impl FnOnce(Managed) -> T) -> Buffer {
        let bytes = self.managed.layout().nbytes();
        let Some(start) = NonNull::new(self.managed.data()).filter(|_| bytes > 0) else {
            return Buffer::from_vec(Vec::<u128>::new()); // aligned for every type
        };
        let owner = Arc::new(Kept(with_it(self.managed.clone())));
        // SAFETY: without gaps (Rows::of), the elements of the layout are the bytes from the first on. The memory is
        // there until its last owner is dropped (Managed), and `with_it` puts one into ours. That nobody changes it
        // meanwhile is for the caller: Rust's arrays come with a Borrow, Python's are the user's to guard.
        unsafe { Buffer::from_custom_allocation(start, bytes, owner) }
    }
}

fn no_word(dtype: DType) -> Error {
    let way_out = match dtype {
        DType::Bool => "of several dimensions; view them as uint8, or hand over one dimension",
        _ if dtype.is_complex() => "; hand over real and imaginary part",
        _ => "; convert them to float32",
    };
    Error::Buffer(format!(
        "Arrow export: expected int8..int64, uint8..uint64, float16..float64, or bool in one dimension, got \
         {dtype}{}{way_out}",
        if dtype == DType::Bool { " " } else { "" }
    ))
}
