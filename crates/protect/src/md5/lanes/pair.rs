//! Two vectors as one word: the processor executes the steps of one while the other waits for its
//! dependencies.

use super::super::rounds::Word;

/// Two words, or two vectors of them.
#[derive(Clone, Copy)]
pub(super) struct Pair<V>(pub(super) V, pub(super) V);

macro_rules! both {
    ($($name:ident($($argument:ident),*);)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: Self),*) -> Self {
            Pair(self.0.$name($($argument.0),*), self.1.$name($($argument.1),*))
        }
    )*};
}

impl<V: Word> Word for Pair<V> {
    #[inline(always)]
    fn all(value: u32) -> Self {
        Pair(V::all(value), V::all(value))
    }
    #[inline(always)]
    fn rotated<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        Pair(
            self.0.rotated::<LEFT, RIGHT>(),
            self.1.rotated::<LEFT, RIGHT>(),
        )
    }
    both! {
        plus(other);
        plus_f(b, c, d);
        plus_g(b, c, d);
        plus_h(b, c, d);
        plus_i(b, c, d);
    }
}
