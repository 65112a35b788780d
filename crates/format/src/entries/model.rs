//! What the packer and the unpacker know of the earlier entries, and what they predict from it.

use refrain_entries::{Entry, EntryKind, Timestamp};

use super::shape::{ContentState, LinkState, RangesState, ReferenceState, Shape, TimeState};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trail {
    pub class: u32,
    /// How far its content is behind its reference's (modulo 2^64); if it has the same content, how
    /// far that is behind the previous content.
    pub step: u64,
}

/// How the paths of a subtree follow from the paths of their references: by replacing a prefix. The
/// prefixes are taken from the paths of entry `entry` and of its reference `reference`.
#[derive(Debug, Clone, Copy)]
struct Replacement {
    entry: usize,
    reference: usize,
    /// The length of the prefix of the entry's path.
    new_bytes: usize,
    /// The length of the prefix of the reference's path that it replaces.
    old_bytes: usize,
}

/// The state between two entries of a frame.
#[derive(Debug, Default)]
pub(super) struct Model {
    trails: Vec<Trail>,
    /// The latest reference other than the previous entry by [`ReferenceState::Previous`].
    latest_reference: Option<usize>,
    replacement: Option<Replacement>,
    latest_time: Timestamp,
    content_end: u64,
    /// The reference of the first entry.
    nothing: Entry,
}

/// An entry's reference and its predictions.
#[derive(Clone, Copy)]
pub(super) struct Reference<'a> {
    /// Its number; `None` for the first entry.
    pub at: Option<usize>,
    pub entry: &'a Entry,
    pub trail: Trail,
    pub is_previous: bool,
}

impl Model {
    pub(super) fn with_capacity(count: usize) -> Self {
        Self {
            trails: Vec::with_capacity(count),
            ..Self::default()
        }
    }

    pub(super) fn next(&self) -> usize {
        self.trails.len()
    }

    pub(super) fn latest_time(&self) -> Timestamp {
        self.latest_time
    }

    pub(super) fn content_end(&self) -> u64 {
        self.content_end
    }

    /// Returns the number of the next entry's expected reference; `None` for the first entry.
    pub(super) fn expected_reference(&self) -> Option<usize> {
        match self.latest_reference {
            Some(latest) => Some(latest + 1),
            None => self.next().checked_sub(1),
        }
    }

    /// How the next entry's reference `at` is stated.
    pub(super) fn reference_state(&self, at: Option<usize>) -> ReferenceState {
        if at == self.expected_reference() {
            ReferenceState::Expected
        } else if at == self.next().checked_sub(1) {
            ReferenceState::Previous
        } else {
            ReferenceState::Stated
        }
    }

    pub(super) fn reference<'a>(
        &'a self,
        entries: &'a [Entry],
        at: Option<usize>,
    ) -> Reference<'a> {
        let trail = at.and_then(|at| self.trails.get(at));
        Reference {
            at,
            entry: at.and_then(|at| entries.get(at)).unwrap_or(&self.nothing),
            trail: trail.copied().unwrap_or_default(),
            is_previous: at == self.next().checked_sub(1),
        }
    }

    /// The path of the previous entry, and the length of the part that the next path most likely
    /// shares: the directory that it is, or in which it is.
    pub(super) fn previous_path<'a>(&self, entries: &'a [Entry]) -> (&'a [u8], usize) {
        let previous = self.next().checked_sub(1).and_then(|at| entries.get(at));
        let Some(previous) = previous else {
            return (&[], 0);
        };
        let path = previous.path.as_slice();
        let shared = match previous.kind {
            EntryKind::Directory => path.len(),
            _ => path
                .iter()
                .rposition(|&byte| byte == b'/')
                .map_or(0, |at| at + 1),
        };
        (path, shared)
    }

    /// The prefix to replace, and its replacement.
    fn replaced_prefixes<'a>(&self, entries: &'a [Entry]) -> Option<(&'a [u8], &'a [u8])> {
        let replacement = self.replacement?;
        let prefix = |entry: usize, length| entries.get(entry)?.path.get(..length);
        Some((
            prefix(replacement.reference, replacement.old_bytes)?,
            prefix(replacement.entry, replacement.new_bytes)?,
        ))
    }

    /// A text of the reference (its path or link target) with the prefix replaced, in two parts;
    /// `None` if it does not begin with the prefix.
    pub(super) fn replaced<'a>(
        &self,
        entries: &'a [Entry],
        text: &'a [u8],
    ) -> Option<(&'a [u8], &'a [u8])> {
        let (old, new) = self.replaced_prefixes(entries)?;
        Some((new, text.strip_prefix(old)?))
    }

    /// The reference's path before the replacement, in two parts.
    pub(super) fn replaced_back<'a>(
        &self,
        entries: &'a [Entry],
        path: &'a [u8],
    ) -> Option<(&'a [u8], &'a [u8])> {
        let (old, new) = self.replaced_prefixes(entries)?;
        Some((old, path.strip_prefix(new)?))
    }

    /// The only valid shape of an entry with this reference. `class` is the number of its class.
    pub(super) fn shape(
        &self,
        entries: &[Entry],
        entry: &Entry,
        class: u32,
        reference: &Reference<'_>,
    ) -> Shape {
        let is_replaced = |old: &[u8], new: &[u8]| {
            let parts = self.replaced(entries, old);
            parts.is_some_and(|(first, rest)| is_joined(new, first, rest))
        };
        let from = reference.entry;
        let has_data = entry.kind.has_data();
        Shape {
            reference: self.reference_state(reference.at),
            states_path: !is_replaced(&from.path, &entry.path),
            states_class: reference.at.is_none() || class != reference.trail.class,
            states_size: has_data && entry.size_bytes != from.size_bytes,
            states_recipe: !are_equal(&entry.header_recipe, &from.header_recipe),
            time: self.time_state(entry.modified, from.modified),
            content: if has_data {
                self.content_state(entry.content_offset, reference)
            } else {
                self.content_state_without_data(entry.content_offset)
            },
            link: match (&from.link_target, &entry.link_target) {
                (_, None) => LinkState::Reference,
                (Some(old), Some(new)) if old == new => LinkState::Reference,
                (Some(old), Some(new)) if is_replaced(old, new) => LinkState::Replaced,
                (_, Some(_)) => LinkState::Stated,
            },
            ranges: match &entry.data_ranges {
                _ if !has_data => RangesState::Reference,
                ranges if *ranges == from.data_ranges => RangesState::Reference,
                None => RangesState::Whole,
                Some(_) => RangesState::Stated,
            },
        }
    }

    fn time_state(&self, time: Timestamp, reference: Timestamp) -> TimeState {
        let latest = self.latest_time;
        if time == reference {
            TimeState::Reference
        } else if time == latest {
            TimeState::Latest
        } else if time.nanoseconds == latest.nanoseconds {
            TimeState::Seconds
        } else if near_nanoseconds(time, latest).is_some() {
            TimeState::Near
        } else {
            TimeState::Far
        }
    }

    fn content_state(&self, offset: u64, reference: &Reference<'_>) -> ContentState {
        let from = reference.entry;
        if offset == from.content_offset {
            ContentState::Reference
        } else if offset == from.content_range().end {
            ContentState::BehindReference
        } else if offset == self.content_end {
            ContentState::BehindLatest
        } else if offset == from.content_offset.wrapping_add(reference.trail.step) {
            ContentState::Step
        } else {
            ContentState::Stated
        }
    }

    fn content_state_without_data(&self, offset: u64) -> ContentState {
        if offset == 0 {
            ContentState::Reference
        } else if offset == self.content_end {
            ContentState::BehindLatest
        } else {
            ContentState::Stated
        }
    }

    /// Whether the content of an entry is predicted from this reference.
    pub(super) fn foresees_content(&self, entry: &Entry, reference: &Reference<'_>) -> bool {
        !entry.kind.has_data()
            || !matches!(
                self.content_state(entry.content_offset, reference),
                ContentState::Stated | ContentState::BehindLatest
            )
    }

    /// Advances past entry [`next`](Self::next) of `entries`.
    pub(super) fn step(
        &mut self,
        entries: &[Entry],
        class: u32,
        reference: Option<usize>,
        shape: Shape,
    ) {
        let at = self.next();
        let Some(entry) = entries.get(at) else {
            return;
        };
        let from = self.reference(entries, reference);
        let step = if entry.kind.has_data() && entry.content_offset != from.entry.content_offset {
            entry.content_offset.wrapping_sub(from.entry.content_offset)
        } else {
            from.trail.step
        };
        if shape.reference != ReferenceState::Previous {
            if shape.states_path {
                self.replacement = reference.map(|reference| replacement(entries, at, reference));
            }
            self.latest_reference = reference;
        }
        if shape.time != TimeState::Reference {
            self.latest_time = entry.modified;
        }
        if entry.kind.has_data() {
            self.content_end = entry.content_range().end;
        }
        self.trails.push(Trail { class, step });
    }
}

/// The replacement of the shortest prefix that turns the path of `reference` into the path of
/// `entry`: the rests are equal.
fn replacement(entries: &[Entry], entry: usize, reference: usize) -> Replacement {
    let path = |at: usize| entries.get(at).map_or(&[][..], |entry| &entry.path);
    let (new, old) = (path(entry), path(reference));
    let shared = shared_suffix(new, old);
    Replacement {
        entry,
        reference,
        new_bytes: new.len() - shared,
        old_bytes: old.len() - shared,
    }
}

/// Returns the difference of two times if they are less than 2^62 ns (146 years) apart.
pub(super) fn near_nanoseconds(time: Timestamp, base: Timestamp) -> Option<i64> {
    let total = |time: Timestamp| {
        i128::from(time.seconds) * i128::from(Timestamp::NANOSECONDS_END)
            + i128::from(time.nanoseconds)
    };
    let nanoseconds = i64::try_from(total(time) - total(base)).ok()?;
    (nanoseconds.unsigned_abs() < 1 << 62).then_some(nanoseconds)
}

/// Adds nanoseconds to `base`; `None` if the result is out of range.
pub(super) fn add_nanoseconds(base: Timestamp, nanoseconds: i64) -> Option<Timestamp> {
    let end = i64::from(Timestamp::NANOSECONDS_END);
    let sum = i64::from(base.nanoseconds) + nanoseconds % end;
    Some(Timestamp {
        seconds: base
            .seconds
            .checked_add(nanoseconds / end)?
            .checked_add(sum.div_euclid(end))?,
        nanoseconds: u32::try_from(sum.rem_euclid(end)).ok()?,
    })
}

pub(super) fn shared_prefix(left: &[u8], right: &[u8]) -> usize {
    let words = left
        .as_chunks::<WORD>()
        .0
        .iter()
        .zip(right.as_chunks::<WORD>().0);
    let shared = WORD * words.take_while(|(a, b)| a == b).count();
    let rest = left.iter().skip(shared).zip(right.iter().skip(shared));
    shared + rest.take_while(|(a, b)| a == b).count()
}

const WORD: usize = 8;

pub(super) fn shared_suffix(left: &[u8], right: &[u8]) -> usize {
    let (left_words, right_words) = (left.as_rchunks::<WORD>().1, right.as_rchunks::<WORD>().1);
    let words = left_words.iter().rev().zip(right_words.iter().rev());
    let shared = WORD * words.take_while(|(a, b)| a == b).count();
    let rest = (left.iter().rev().skip(shared)).zip(right.iter().rev().skip(shared));
    shared + rest.take_while(|(a, b)| a == b).count()
}

/// Whether two texts, mostly empty, are equal. (`memcmp` is slow for the dangling pointers of empty
/// vectors: some versions use masked loads, which the processor has to suppress.)
fn are_equal(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && (left.is_empty() || left == right)
}

pub(super) fn is_joined(text: &[u8], first: &[u8], rest: &[u8]) -> bool {
    text.len() == first.len() + rest.len() && text.starts_with(first) && text.ends_with(rest)
}
