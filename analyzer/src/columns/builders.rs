//! Columns while they are filled: those of Arrow, and what a table wants of any others.

use std::mem::replace;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, StringBuilder};
use arrow_array::types::{ArrowPrimitiveType, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};

/// One kind of columns.
pub(crate) trait Builders {
    /// A column when it is full.
    type Column;
    type U32: Fill<u32, Self::Column>;
    type U64: Fill<u64, Self::Column>;
    type I64: Fill<i64, Self::Column>;
    type Bool: Fill<bool, Self::Column>;
    type Text: for<'a> Fill<&'a str, Self::Column>;
    type Bytes: for<'a> Fill<&'a [u8], Self::Column>;
}

/// A column of values of one type.
pub(crate) trait Fill<T, C> {
    /// Without values.
    fn empty() -> Self;

    fn put(&mut self, value: T);

    fn put_null(&mut self);

    /// Takes the values out; `room` more are to come.
    fn take(&mut self, room: usize) -> C;
}

/// Arrow's columns.
pub(crate) struct Arrow;

impl Builders for Arrow {
    type Column = ArrayRef;
    type U32 = Numbers<UInt32Type>;
    type U64 = Numbers<UInt64Type>;
    type I64 = Numbers<Int64Type>;
    type Bool = BooleanBuilder;
    type Text = StringBuilder;
    type Bytes = BinaryBuilder;
}

/// Numbers. Arrow's own builders count for each value that it is not null, which costs a fourth of filling a table.
pub(crate) struct Numbers<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    /// Which of them are not null, once one is.
    valid: Option<BooleanBufferBuilder>,
}

impl<T: ArrowPrimitiveType> Fill<T::Native, ArrayRef> for Numbers<T> {
    fn empty() -> Self {
        Self { values: Vec::new(), valid: None }
    }

    #[inline]
    fn put(&mut self, value: T::Native) {
        self.values.push(value);
        if let Some(valid) = &mut self.valid {
            valid.append(true);
        }
    }

    #[cold]
    fn put_null(&mut self) {
        let valid = self.valid.get_or_insert_with(|| {
            let mut valid = BooleanBufferBuilder::new(self.values.len() + 1);
            valid.append_n(self.values.len(), true);
            valid
        });
        valid.append(false);
        self.values.push(T::Native::default());
    }

    fn take(&mut self, room: usize) -> ArrayRef {
        let values = replace(&mut self.values, Vec::with_capacity(room));
        let valid = self.valid.take().map(|mut valid| NullBuffer::new(valid.finish()));
        Arc::new(PrimitiveArray::<T>::new(values.into(), valid))
    }
}

/// [`Fill`] for one of Arrow's builders: with no values, and with room for some.
macro_rules! fill {
    ($builder:ty, $value:ty, $empty:expr, $room:expr) => {
        impl Fill<$value, ArrayRef> for $builder {
            fn empty() -> Self {
                $empty
            }

            #[inline]
            fn put(&mut self, value: $value) {
                self.append_value(value);
            }

            #[inline]
            fn put_null(&mut self) {
                self.append_null();
            }

            fn take(&mut self, room: usize) -> ArrayRef {
                let with_room = $room(&*self, room);
                Arc::new(replace(self, with_room).finish())
            }
        }
    };
}

fill!(BooleanBuilder, bool, Self::with_capacity(0), |_: &Self, room| Self::with_capacity(room));
fill!(StringBuilder, &str, Self::with_capacity(0, 0), |all: &Self, room| {
    let bytes = all.values_slice().len();
    Self::with_capacity(room, bytes + bytes / 4)
});
fill!(BinaryBuilder, &[u8], Self::with_capacity(0, 0), |all: &Self, room| {
    let bytes = all.values_slice().len();
    Self::with_capacity(room, bytes + bytes / 4)
});
