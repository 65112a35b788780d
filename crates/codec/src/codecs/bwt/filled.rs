//! Large arrays.

/// An array on the heap, without a copy on the stack. `None` when memory cannot be allocated.
pub(super) fn filled<T: Copy, const COUNT: usize>(value: T) -> Option<Box<[T; COUNT]>> {
    let mut items = Vec::new();
    items.try_reserve_exact(COUNT).ok()?;
    items.resize(COUNT, value);
    items.into_boxed_slice().try_into().ok()
}
