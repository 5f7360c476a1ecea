//! Columns while they are filled: those of Arrow, and what a table wants of any others.

use std::mem::replace;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{BinaryBuilder, BooleanBuilder, Int64Builder, StringBuilder, UInt32Builder, UInt64Builder};

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
    type U32 = UInt32Builder;
    type U64 = UInt64Builder;
    type I64 = Int64Builder;
    type Bool = BooleanBuilder;
    type Text = StringBuilder;
    type Bytes = BinaryBuilder;
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

fill!(UInt32Builder, u32, Self::with_capacity(0), |_: &Self, room| Self::with_capacity(room));
fill!(UInt64Builder, u64, Self::with_capacity(0), |_: &Self, room| Self::with_capacity(room));
fill!(Int64Builder, i64, Self::with_capacity(0), |_: &Self, room| Self::with_capacity(room));
fill!(BooleanBuilder, bool, Self::with_capacity(0), |_: &Self, room| Self::with_capacity(room));
fill!(StringBuilder, &str, Self::with_capacity(0, 0), |all: &Self, room| {
    let bytes = all.values_slice().len();
    Self::with_capacity(room, bytes + bytes / 4)
});
fill!(BinaryBuilder, &[u8], Self::with_capacity(0, 0), |all: &Self, room| {
    let bytes = all.values_slice().len();
    Self::with_capacity(room, bytes + bytes / 4)
});
