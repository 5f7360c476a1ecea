//! Columns of polars while they are filled.

use std::mem::replace;

use polars::prelude::*;

use crate::columns::{Builders, Fill, FillText, Number, Numbers};

/// Columns of polars: of one piece each, and without a name yet.
pub(super) struct Polars;

impl Builders for Polars {
    type Column = Column;
    type U32 = Numbers<u32, Column>;
    type U64 = Numbers<u64, Column>;
    type I64 = Numbers<i64, Column>;
    type Bool = BooleanChunkedBuilder;
    type Text = StringChunkedBuilder;
    type Bytes = BinaryChunkedBuilder;
}

macro_rules! number {
    ($native:ty, $polars:ty) => {
        impl Number<Column> for $native {
            fn column(values: Vec<Self>, valid: Option<Vec<bool>>) -> Column {
                let valid = valid.map(|valid| valid.into_iter().collect());
                ChunkedArray::<$polars>::from_vec_validity(PlSmallStr::EMPTY, values, valid).into_column()
            }
        }
    };
}

number!(u32, UInt32Type);
number!(u64, UInt64Type);
number!(i64, Int64Type);

macro_rules! fill {
    ($builder:ty, $value:ty) => {
        impl Fill<$value, Column> for $builder {
            fn empty() -> Self {
                Self::new(PlSmallStr::EMPTY, 0)
            }

            #[inline]
            fn put(&mut self, value: $value) {
                self.append_value(value);
            }

            #[inline]
            fn put_null(&mut self) {
                self.append_null();
            }

            fn take(&mut self, _: usize) -> Column {
                replace(self, Self::empty()).finish().into_column()
            }
        }
    };
}

fill!(BooleanChunkedBuilder, bool);
fill!(StringChunkedBuilder, &str);
fill!(BinaryChunkedBuilder, &[u8]);

impl FillText<Column> for StringChunkedBuilder {}
