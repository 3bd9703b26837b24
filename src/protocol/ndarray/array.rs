//! Converts storages to and from owned arrays of `ndarray`.

use ndarray::{Array, Dimension};

use crate::device::Device;
use crate::element::Element;
use crate::error::Result;
use crate::layout::Layout;
use crate::managed::{Managed, Owner};
use crate::storage::{Spec, Storage};

impl Storage {
    /// Moves an array into a storage, with any order and direction of its axes. Copies nothing. The
    /// storage has no labels; add them with [`Storage::with_dims`] and [`Storage::with_halo`].
    ///
    /// # Errors
    /// [`crate::Error::Buffer`] for more dimensions than [`MAX_NDIM`](crate::MAX_NDIM).
    ///
    /// # Example
    ///
    /// ```
    /// use dlfield::Storage;
    /// use dlfield::ndarray::{Array, Ix2};
    ///
    /// let array = Array::from_shape_fn((3, 4), |(i, j)| (10 * i + j) as f32);
    /// let address = array.as_ptr();
    /// let field = Storage::from_array(array)?.with_dims(["I", "J"])?;
    /// assert_eq!(field.managed().data().cast_const().cast(), address);
    /// assert_eq!(field.to_array::<f32, Ix2>()?[[2, 3]], 23.0);
    /// # Ok::<(), dlfield::Error>(())
    /// ```
    pub fn from_array<T: Element, D: Dimension + 'static>(mut array: Array<T, D>) -> Result<Self> {
        // ndarray keeps extents and strides within isize: the fallbacks are never used.
        let shape = array.shape().iter().map(|&extent| i64::try_from(extent).unwrap_or(i64::MAX));
        let strides = array.strides().iter().map(|&stride| i64::try_from(stride).unwrap_or(0));
        let layout = Layout::new(shape.collect(), strides.collect(), size_of::<T>())?;
        let data = array.as_mut_ptr().cast();
        let owner = Owner::new(array);
        // SAFETY: an owned array of ndarray's has a distinct element for every index. They lie on the
        // heap, where they stay when the array moves into the owner, which nothing but the drop uses.
        let managed = unsafe { Managed::from_owned(data, layout, T::DTYPE, Device::CPU, owner) };
        Self::wrap(managed, &Spec::default())
    }

    /// Copies the values on the host into an array, in the storage's own order of axes.
    ///
    /// # Errors
    /// As [`Storage::view`].
    pub fn to_array<T: Element, D: Dimension>(&self) -> Result<Array<T, D>> {
        Ok(self.view::<T, D>()?.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Neg;
    use std::sync::Arc;

    use ndarray::{Array, ArrayD, Axis, Ix2, Ix3, IxDyn, s};

    use super::super::view::FieldMut;
    use super::*;
    use crate::dtype::DType;

    fn counted(shape: [usize; 3]) -> Array<i32, Ix3> {
        let mut count = 0;
        Array::from_shape_simple_fn(shape, || {
            count += 1;
            count
        })
    }

    #[test]
    fn an_array_goes_in_and_comes_out_with_its_values() {
        let array = counted([3, 4, 5]);
        let field = Storage::from_array(array.clone()).unwrap();
        assert_eq!(field.managed().dtype(), DType::Int32);
        assert_eq!(field.to_array::<i32, Ix3>().unwrap(), array);
        assert_eq!(field.to_array::<i32, IxDyn>().unwrap(), array.into_dyn());
    }

    #[test]
    fn reversed_axes_keep_their_values() {
        let mut array = counted([3, 4, 5]);
        array.invert_axis(Axis(0));
        array.invert_axis(Axis(2));
        array.swap_axes(0, 1);
        let first = array.as_ptr().addr();
        let field = Storage::from_array(array.clone()).unwrap();
        assert_ne!(array.strides()[1].signum(), 1);
        assert_eq!(field.managed().layout().strides()[1].neg(), 20);
        assert_eq!(field.view::<i32, Ix3>().unwrap().view(), array);
        assert_ne!(field.managed().address(), first, "the clone has other memory");
        field.view_mut::<i32, Ix3>().unwrap()[[3, 2, 4]] = -1;
        assert_eq!(field.to_array::<i32, Ix3>().unwrap()[[3, 2, 4]], -1);
        assert_eq!(field.to_array::<i32, Ix3>().unwrap().iter().filter(|&&x| x < 0).count(), 1);
    }

    #[test]
    fn views_of_steps_and_parts_have_the_same_values() {
        let array = counted([3, 4, 5]);
        let field = Storage::from_array(array.clone()).unwrap();
        let part = |start, step| crate::layout::Item::Slice {
            start: Some(start),
            stop: None,
            step: Some(step),
        };
        let view = field.select(&[part(2, -1), part(1, 2)]).unwrap();
        assert_eq!(view.view::<i32, Ix3>().unwrap().view(), array.slice(s![..;-1, 1..;2, ..]));
    }

    #[test]
    fn an_array_without_elements_and_one_without_dimensions_work() {
        let none = Storage::from_array(ArrayD::<f64>::zeros(vec![3, 0, 2])).unwrap();
        assert_eq!(none.view::<f64, IxDyn>().unwrap().shape(), [3, 0, 2]);
        assert_eq!(none.view_mut::<f64, Ix3>().unwrap().len(), 0);
        let one = Storage::from_array(ndarray::arr0(2.5_f64)).unwrap();
        assert_eq!(one.view::<f64, IxDyn>().unwrap().sum(), 2.5);
    }

    #[test]
    fn interleaved_axes_are_readable_only() {
        let layout = Layout::new(smallvec::smallvec![2, 4], smallvec::smallvec![5, 2], 4).unwrap();
        let mut memory: Vec<i32> = (0..12).collect();
        let data = memory.as_mut_ptr().cast();
        // SAFETY: the last element is at 5 + 3 * 2 of 12. 5 is odd and other steps are even, so
        // that all elements are distinct.
        let managed = unsafe {
            Managed::from_owned(data, layout, DType::Int32, Device::CPU, Owner::new(memory))
        };
        let field = Storage::wrap(managed, &Spec::default()).unwrap();
        assert_eq!(field.view::<i32, Ix2>().unwrap()[[1, 3]], 11);
        let error = field.view_mut::<i32, Ix2>().unwrap_err().to_string();
        assert!(error.contains("expected axes that do not interleave"), "{error}");
    }

    #[test]
    fn names_belong_to_the_original_field() {
        let field =
            Storage::from_array(counted([3, 4, 5])).unwrap().with_dims(["I", "J", "K"]).unwrap();
        let mut view = field.view_mut::<i32, Ix3>().unwrap();
        view.swap_axes(0, 2);
        assert!(
            view.domain_mut()
                .unwrap_err()
                .to_string()
                .contains("do not reorder, invert or cut its axes")
        );
        let turned = view.in_order::<Ix3>(&["J", "I", "K"]).unwrap();
        assert_eq!((turned.shape(), turned[[3, 2, 4]]), (&[4, 3, 5][..], 60));
    }

    #[test]
    fn the_hook_runs_while_the_borrow_excludes_others() {
        let field = Storage::from_array(counted([3, 4, 5])).unwrap();
        let refused = Arc::new(std::sync::Mutex::new(Vec::new()));
        for names in [&["I", "J", "K"][..], &["I", "J"]] {
            let (seen, same) = (Arc::clone(&refused), field.clone());
            let hook = move || seen.lock().unwrap().push(same.view::<i32, Ix3>().is_err());
            let memory = field.managed().clone();
            let view = FieldMut::<i32, Ix3>::over(memory, field.field(), Some(Box::new(hook)));
            drop(view.unwrap().in_order::<Ix3>(names));
        }
        assert_eq!(*refused.lock().unwrap(), [true, true]);
        assert!(field.view::<i32, Ix3>().is_ok());
    }

    #[test]
    fn another_type_or_number_of_dimensions_is_refused() {
        let field = Storage::from_array(counted([3, 4, 5])).unwrap();
        let error = field.view::<f64, Ix3>().unwrap_err().to_string();
        assert!(error.starts_with("field: expected elements of float64, got int32"), "{error}");
        let error = field.view::<i32, Ix2>().unwrap_err().to_string();
        assert!(error.contains("expected 2 dimensions, got shape [3, 4, 5]"), "{error}");
    }

    #[test]
    fn readers_and_writers_exclude_each_other() {
        let field = Storage::from_array(counted([3, 4, 5])).unwrap();
        let same = field.clone();
        let reader = field.view::<i32, Ix3>().unwrap();
        assert!(same.view::<i32, Ix3>().is_ok());
        let error = same.view_mut::<i32, Ix3>().unwrap_err().to_string();
        assert!(error.contains("being read through another view"), "{error}");
        drop(reader);
        let writer = same.view_mut::<i32, Ix3>().unwrap();
        assert!(field.view::<i32, Ix3>().is_err());
        drop(writer);
        assert!(field.view_mut::<i32, Ix3>().is_ok());
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_existing_ones() {
        let field = Storage::from_array(counted([3, 4, 5])).unwrap();
        let in_order = |field: &Storage, names: &[&str]| {
            let turned = field.view::<i32, Ix3>().unwrap().in_order::<Ix3>(names);
            turned.map(|view| view.shape().to_vec()).map_err(|error| error.to_string())
        };
        assert_eq!(in_order(&field, &["K", "I", "J"]), Ok(vec![3, 4, 5]), "the field has no names");
        let named = field.with_dims(["I", "J", "K"]).unwrap();
        assert_eq!(in_order(&named, &["K", "I", "J"]), Ok(vec![5, 3, 4]));
        let error = in_order(&named, &["I", "J", "lev"]).unwrap_err();
        assert!(
            error.contains("expected dimensions ('I', 'J', 'lev'), got ('I', 'J', 'K')"),
            "{error}"
        );
        assert!(in_order(&named, &["I", "J"]).is_err());
    }
}
