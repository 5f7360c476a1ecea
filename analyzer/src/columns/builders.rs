//! Columns while they are filled: those of Arrow, and what a table wants of any others.

use std::marker::PhantomData;
use std::mem::{replace, take};
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder};
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, PrimitiveArray, StringArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};

use super::text::{Oddities, put_text};

/// One kind of columns.
pub(crate) trait Builders {
    /// A column when it is full.
    type Column;
    type U32: Fill<u32, Self::Column>;
    type U64: Fill<u64, Self::Column>;
    type I64: Fill<i64, Self::Column>;
    type Bool: Fill<bool, Self::Column>;
    type Text: FillText<Self::Column>;
    type Bytes: for<'a> Fill<&'a [u8], Self::Column>;
}

/// A column of values of one type.
pub(crate) trait Fill<T, C> {
    /// Without values.
    fn empty() -> Self;

    fn put(&mut self, value: T);

    fn put_all(&mut self, values: impl Iterator<Item = T>) {
        values.for_each(|value| self.put(value));
    }

    fn put_null(&mut self);

    /// Takes the values out; `room` more are to come.
    fn take(&mut self, room: usize) -> C;
}

/// A column of strings.
pub(crate) trait FillText<C>: for<'a> Fill<&'a str, C> {
    /// Adds strings as they stand in the file.
    fn put_texts<'a>(&mut self, texts: impl Iterator<Item = &'a [u8]> + Clone, oddities: &mut Oddities) {
        texts.for_each(|text| put_text(text, oddities, |text| self.put(text)));
    }
}

/// Arrow's columns.
pub(crate) struct Arrow;

impl Builders for Arrow {
    type Column = ArrayRef;
    type U32 = Numbers<u32, ArrayRef>;
    type U64 = Numbers<u64, ArrayRef>;
    type I64 = Numbers<i64, ArrayRef>;
    type Bool = BooleanBuilder;
    type Text = Strings;
    type Bytes = BinaryBuilder;
}

/// Numbers. The libraries' own builders count for each value that it is not null, which costs a fourth of filling a table.
pub(crate) struct Numbers<N, C> {
    values: Vec<N>,
    nulls: Nulls,
    column: PhantomData<fn() -> C>,
}

/// Which values are null, once one is.
#[derive(Default)]
struct Nulls(Vec<bool>);

impl Nulls {
    /// Takes in values that are not.
    #[inline]
    fn valid(&mut self, all: usize) {
        if !self.0.is_empty() {
            self.0.resize(all, true);
        }
    }

    /// Takes in that the last one is.
    fn null(&mut self, all: usize) {
        self.0.resize(all - 1, true);
        self.0.push(false);
    }

    /// Which ones are not, if any is.
    fn take(&mut self) -> Option<Vec<bool>> {
        Some(take(&mut self.0)).filter(|valid| !valid.is_empty())
    }
}

/// A number that a column is made of.
pub(crate) trait Number<C>: Copy + Default {
    /// A column of values, and which of them are not null.
    fn column(values: Vec<Self>, valid: Option<Vec<bool>>) -> C;
}

impl<N: Number<C>, C> Fill<N, C> for Numbers<N, C> {
    fn empty() -> Self {
        Self { values: Vec::new(), nulls: Nulls::default(), column: PhantomData }
    }

    #[inline]
    fn put(&mut self, value: N) {
        self.values.push(value);
        self.nulls.valid(self.values.len());
    }

    #[inline]
    fn put_all(&mut self, values: impl Iterator<Item = N>) {
        self.values.extend(values);
        self.nulls.valid(self.values.len());
    }

    #[cold]
    fn put_null(&mut self) {
        self.values.push(N::default());
        self.nulls.null(self.values.len());
    }

    fn take(&mut self, room: usize) -> C {
        N::column(replace(&mut self.values, Vec::with_capacity(room)), self.nulls.take())
    }
}

macro_rules! number {
    ($native:ty, $arrow:ty) => {
        impl Number<ArrayRef> for $native {
            fn column(values: Vec<Self>, valid: Option<Vec<bool>>) -> ArrayRef {
                Arc::new(PrimitiveArray::<$arrow>::new(values.into(), valid.map(NullBuffer::from)))
            }
        }
    };
}

number!(u32, UInt32Type);
number!(u64, UInt64Type);
number!(i64, Int64Type);

/// Strings of Arrow.
pub(crate) struct Strings {
    bytes: Vec<u8>,
    /// Where each begins, and the last one ends.
    bounds: Vec<i32>,
    nulls: Nulls,
}

impl Strings {
    #[inline]
    fn end(&mut self) {
        self.bounds.push(i32::try_from(self.bytes.len()).expect("a batch has less than 2 GiB of text"));
    }
}

impl Fill<&str, ArrayRef> for Strings {
    fn empty() -> Self {
        Self { bytes: Vec::new(), bounds: vec![0], nulls: Nulls::default() }
    }

    #[inline]
    fn put(&mut self, value: &str) {
        self.bytes.extend_from_slice(value.as_bytes());
        self.end();
        self.nulls.valid(self.bounds.len() - 1);
    }

    #[cold]
    fn put_null(&mut self) {
        self.end();
        self.nulls.null(self.bounds.len() - 1);
    }

    fn take(&mut self, room: usize) -> ArrayRef {
        let mut bounds = Vec::with_capacity(room + 1);
        bounds.push(0);
        let bounds = OffsetBuffer::new(replace(&mut self.bounds, bounds).into());
        let room = self.bytes.len() + self.bytes.len() / 4;
        let bytes = replace(&mut self.bytes, Vec::with_capacity(room));
        let nulls = self.nulls.take().map(NullBuffer::from);
        Arc::new(StringArray::new(bounds, bytes.into(), nulls))
    }
}

impl FillText<ArrayRef> for Strings {
    fn put_texts<'a>(&mut self, texts: impl Iterator<Item = &'a [u8]> + Clone, oddities: &mut Oddities) {
        let (bytes, rows) = (self.bytes.len(), self.bounds.len());
        for text in texts.clone() {
            self.bytes.extend_from_slice(text);
            self.end();
        }
        if self.bytes[bytes..].is_ascii() {
            self.nulls.valid(self.bounds.len() - 1);
        } else {
            self.bytes.truncate(bytes);
            self.bounds.truncate(rows);
            texts.for_each(|text| put_text(text, oddities, |text| self.put(text)));
        }
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
fill!(BinaryBuilder, &[u8], Self::with_capacity(0, 0), |all: &Self, room| {
    let bytes = all.values_slice().len();
    Self::with_capacity(room, bytes + bytes / 4)
});
