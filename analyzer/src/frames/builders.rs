//! Columns of polars while they are filled.

use std::mem::replace;

use polars::prelude::*;

use crate::columns::{Builders, Fill};

/// Columns of polars: of one piece each, and without a name yet.
pub(super) struct Polars;

impl Builders for Polars {
    type Column = Column;
    type U32 = PrimitiveChunkedBuilder<UInt32Type>;
    type U64 = PrimitiveChunkedBuilder<UInt64Type>;
    type I64 = PrimitiveChunkedBuilder<Int64Type>;
    type Bool = BooleanChunkedBuilder;
    type Text = StringChunkedBuilder;
    type Bytes = BinaryChunkedBuilder;
}

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

fill!(PrimitiveChunkedBuilder<UInt32Type>, u32);
fill!(PrimitiveChunkedBuilder<UInt64Type>, u64);
fill!(PrimitiveChunkedBuilder<Int64Type>, i64);
fill!(BooleanChunkedBuilder, bool);
fill!(StringChunkedBuilder, &str);
fill!(BinaryChunkedBuilder, &[u8]);
