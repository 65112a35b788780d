//! Numbers for names, so that an event holds a number instead of text.

use std::sync::{PoisonError, RwLock};

static NAMES: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());

/// The names that one thread has used. There are a dozen or two: searching them takes no longer
/// than a hash.
#[derive(Debug, Default)]
pub struct NameCache {
    known: Vec<(&'static str, u32)>,
}

impl NameCache {
    /// The number of a name, the same on all threads.
    pub fn number_of(&mut self, name: &'static str) -> u32 {
        let is_same = |known: &&'static str| std::ptr::eq(*known, name);
        if let Some((_, number)) = self.known.iter().find(|(known, _)| is_same(known)) {
            return *number;
        }
        let number = number_for_all(name);
        self.known.push((name, number));
        number
    }
}

fn number_for_all(name: &'static str) -> u32 {
    let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
    let found = names.iter().position(|known| *known == name);
    let number = found.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    });
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The name with a number; empty if it is unknown.
pub fn name_of(number: u32) -> &'static str {
    let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
    names.get(number as usize).copied().unwrap_or_default()
}
