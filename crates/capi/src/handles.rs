//! Handles: numbers in the shape of pointers, which nobody follows.
//!
//! A handle tells its type, its place in a table, and how often that place was used before. A
//! handle that was closed, or never was one, is therefore found out instead of leading to freed
//! memory. What a handle stands for lives until the last call that uses it returns, even if another
//! thread closes it meanwhile.

use std::sync::Arc;

use refrain_sync::{Mutex, lock};

use crate::failure::{Failure, Result};
use crate::numbers::{REFRAIN_ERROR_HANDLE, REFRAIN_ERROR_LIMIT};

/// Bits of a handle: its type on top, then the use of its place, then the place.
const TYPE_BITS: u32 = 4;
const PLACE_BITS: u32 = usize::BITS * 3 / 8;
const USE_BITS: u32 = usize::BITS - TYPE_BITS - PLACE_BITS;

const PLACE_MASK: usize = (1 << PLACE_BITS) - 1;
const USE_MASK: usize = (1 << USE_BITS) - 1;

/// A handle as a number; 0 is NULL.
pub(crate) type Token = usize;

/// What a handle stands for.
#[derive(Debug)]
pub(crate) struct Handle<T> {
    pub value: T,
    /// The message of the last call that failed.
    message: Mutex<String>,
}

impl<T> Handle<T> {
    pub(crate) fn set_message(&self, message: &str) {
        message.clone_into(&mut lock(&self.message));
    }

    pub(crate) fn message(&self) -> String {
        lock(&self.message).clone()
    }
}

#[derive(Debug)]
struct Slot<T> {
    use_number: usize,
    handle: Option<Arc<Handle<T>>>,
}

#[derive(Debug)]
struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

/// The open handles of one type.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    type_number: usize,
    slots: Mutex<Slots<T>>,
}

impl<T> Handles<T> {
    /// No handles. The number, 1 to 15, is the type's own.
    pub(crate) const fn new(type_number: usize) -> Handles<T> {
        Handles {
            type_number,
            slots: Mutex::new(Slots {
                slots: Vec::new(),
                free: Vec::new(),
            }),
        }
    }

    /// A new handle for `value`.
    pub(crate) fn open(&self, value: T) -> Result<Token> {
        let handle = Arc::new(Handle {
            value,
            message: Mutex::new(String::new()),
        });
        let mut slots = lock(&self.slots);
        let place = match slots.free.pop() {
            Some(place) => place,
            None if slots.slots.len() < PLACE_MASK => {
                slots.slots.push(Slot {
                    use_number: 0,
                    handle: None,
                });
                slots.slots.len() - 1
            }
            None => {
                drop(slots);
                return Err(Failure::new(REFRAIN_ERROR_LIMIT, "too many open handles"));
            }
        };
        let slot = &mut slots.slots[place];
        slot.handle = Some(handle);
        Ok(self.token(place, slot.use_number))
    }

    /// What an open handle stands for.
    pub(crate) fn get(&self, token: Token) -> Result<Arc<Handle<T>>> {
        let slots = lock(&self.slots);
        let place = self.place(&slots, token);
        let found = place.and_then(|place| slots.slots[place].handle.clone());
        found.ok_or_else(no_handle)
    }

    /// Closes a handle, and returns what it stood for.
    pub(crate) fn close(&self, token: Token) -> Result<Arc<Handle<T>>> {
        let mut slots = lock(&self.slots);
        let place = self.place(&slots, token).ok_or_else(no_handle)?;
        let slot = &mut slots.slots[place];
        let handle = slot.handle.take().ok_or_else(no_handle)?;
        slot.use_number = (slot.use_number + 1) & USE_MASK;
        slots.free.push(place);
        Ok(handle)
    }

    /// The number of open handles.
    pub(crate) fn count(&self) -> usize {
        let slots = lock(&self.slots);
        slots.slots.len() - slots.free.len()
    }

    /// Whether the token is of this type, open or not.
    pub(crate) fn is_of_type(&self, token: Token) -> bool {
        token >> (usize::BITS - TYPE_BITS) == self.type_number
    }

    fn token(&self, place: usize, use_number: usize) -> Token {
        self.type_number << (usize::BITS - TYPE_BITS) | use_number << PLACE_BITS | place
    }

    fn place(&self, slots: &Slots<T>, token: Token) -> Option<usize> {
        let place = token & PLACE_MASK;
        let slot = slots.slots.get(place)?;
        (self.token(place, slot.use_number) == token).then_some(place)
    }
}

pub(crate) fn no_handle() -> Failure {
    let text = "the handle is NULL, was closed, or is of another type";
    Failure::new(REFRAIN_ERROR_HANDLE, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_and_foreign_handles_are_found_out() {
        let (ours, others) = (Handles::new(1), Handles::new(2));
        let first = ours.open("first").unwrap();
        assert_eq!(ours.get(first).unwrap().value, "first");
        assert!(ours.is_of_type(first) && !others.is_of_type(first));
        let other = others.open("other").unwrap();
        assert!(ours.get(other).is_err());
        assert!(ours.get(0).is_err());
        assert!(ours.get(usize::MAX).is_err());
        assert_eq!(ours.close(first).unwrap().value, "first");
        assert!(ours.close(first).is_err());
        // The same place, but not the same handle.
        let second = ours.open("second").unwrap();
        assert_eq!(first & PLACE_MASK, second & PLACE_MASK);
        assert!(ours.get(first).is_err());
        assert_eq!(ours.get(second).unwrap().value, "second");
        assert_eq!((ours.count(), others.count()), (1, 1));
    }

    #[test]
    fn a_closed_handle_lives_while_it_is_used() {
        let handles = Handles::new(1);
        let token = handles.open(vec![1, 2, 3]).unwrap();
        let used = handles.get(token).unwrap();
        handles.close(token).unwrap();
        assert_eq!(used.value, [1, 2, 3]);
        assert_eq!(handles.count(), 0);
    }

    #[test]
    fn the_uses_of_a_place_wrap_around() {
        let handles = Handles::new(15);
        let token = handles.open(()).unwrap();
        handles.close(token).unwrap();
        lock(&handles.slots).slots[0].use_number = USE_MASK;
        let last = handles.open(()).unwrap();
        assert_eq!(last >> (usize::BITS - TYPE_BITS), 15);
        handles.close(last).unwrap();
        assert_eq!(handles.open(()).unwrap(), token);
    }
}
