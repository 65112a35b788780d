//! The shape of an entry: for each of its fields, which prediction gives its value, or that columns
//! state it.

use crate::error::{FormatError, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ReferenceState {
    /// After the latest reference that is not [`Previous`](Self::Previous).
    #[default]
    Expected,
    /// The previous entry.
    Previous,
    /// Stated in the column.
    Stated,
}

/// How a time is coded. The *latest own* time belongs to the latest entry that does not have its
/// reference's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TimeState {
    /// The time of the reference.
    #[default]
    Reference,
    /// The latest own time.
    Latest,
    /// The latest own time plus whole seconds.
    Seconds,
    /// The latest own time plus a number of nanoseconds.
    Near,
    /// Seconds after the latest own time, and nanoseconds.
    Far,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ContentState {
    /// The offset of the reference.
    #[default]
    Reference,
    /// The end of the reference's content.
    BehindReference,
    /// The end of the latest content.
    BehindLatest,
    /// As far behind the reference's content as that is behind the content of *its* reference.
    Step,
    /// The column holds the distance from the end of the latest content.
    Stated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum LinkState {
    /// The reference's target. Also used for entries that are not links.
    #[default]
    Reference,
    /// The reference's target with the replacement that also gives paths.
    Replaced,
    /// Stated in the column.
    Stated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RangesState {
    /// The reference's ranges. Also used for entries without data.
    #[default]
    Reference,
    /// All is data, but not in the reference.
    Whole,
    /// Stated in the column.
    Stated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shape {
    pub reference: ReferenceState,
    /// Whether the columns hold the path, which is predicted otherwise.
    pub states_path: bool,
    /// Whether the column holds the class. Otherwise it is the reference's.
    pub states_class: bool,
    /// Whether the column holds the size. Otherwise it is the reference's, or 0 without data.
    pub states_size: bool,
    /// Whether the column holds the header recipe. Otherwise it is the reference's.
    pub states_recipe: bool,
    pub time: TimeState,
    pub content: ContentState,
    pub link: LinkState,
    pub ranges: RangesState,
}

/// The number of codes, valid or not.
pub(super) const SHAPE_CODES: usize = 1 << 16;

const PATH_BIT: u16 = 1 << 2;
const CLASS_BIT: u16 = 1 << 3;
const SIZE_BIT: u16 = 1 << 4;
const RECIPE_BIT: u16 = 1 << 5;
const TIME_SHIFT: u32 = 6;
const CONTENT_SHIFT: u32 = 9;
const LINK_SHIFT: u32 = 12;
const RANGES_SHIFT: u32 = 14;

const REFERENCE_STATES: [ReferenceState; 3] = [
    ReferenceState::Expected,
    ReferenceState::Previous,
    ReferenceState::Stated,
];
const TIME_STATES: [TimeState; 5] = [
    TimeState::Reference,
    TimeState::Latest,
    TimeState::Seconds,
    TimeState::Near,
    TimeState::Far,
];
const CONTENT_STATES: [ContentState; 5] = [
    ContentState::Reference,
    ContentState::BehindReference,
    ContentState::BehindLatest,
    ContentState::Step,
    ContentState::Stated,
];
const LINK_STATES: [LinkState; 3] = [LinkState::Reference, LinkState::Replaced, LinkState::Stated];
const RANGES_STATES: [RangesState; 3] = [
    RangesState::Reference,
    RangesState::Whole,
    RangesState::Stated,
];

impl Shape {
    pub(super) fn code(self) -> u16 {
        let bit = |is_set: bool, bit: u16| if is_set { bit } else { 0 };
        self.reference as u16
            | bit(self.states_path, PATH_BIT)
            | bit(self.states_class, CLASS_BIT)
            | bit(self.states_size, SIZE_BIT)
            | bit(self.states_recipe, RECIPE_BIT)
            | (self.time as u16) << TIME_SHIFT
            | (self.content as u16) << CONTENT_SHIFT
            | (self.link as u16) << LINK_SHIFT
            | (self.ranges as u16) << RANGES_SHIFT
    }

    pub(super) fn from_code(code: u16) -> Result<Self> {
        Ok(Self {
            reference: state(&REFERENCE_STATES, code, code & 3)?,
            states_path: code & PATH_BIT != 0,
            states_class: code & CLASS_BIT != 0,
            states_size: code & SIZE_BIT != 0,
            states_recipe: code & RECIPE_BIT != 0,
            time: state(&TIME_STATES, code, code >> TIME_SHIFT & 7)?,
            content: state(&CONTENT_STATES, code, code >> CONTENT_SHIFT & 7)?,
            link: state(&LINK_STATES, code, code >> LINK_SHIFT & 3)?,
            ranges: state(&RANGES_STATES, code, code >> RANGES_SHIFT)?,
        })
    }
}

/// Values without a state are left to later versions.
fn state<T: Copy>(states: &[T], code: u16, value: u16) -> Result<T> {
    let state = states.get(usize::from(value)).copied();
    state.ok_or(FormatError::Reserved {
        what: "shape of an entry",
        value: u64::from(code),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_shapes_match_one_to_one() {
        let valid = (0..=u16::MAX).filter(|&code| match Shape::from_code(code) {
            Ok(shape) => {
                assert_eq!(shape.code(), code);
                true
            }
            Err(_) => false,
        });
        assert_eq!(valid.count(), 3 * 16 * 5 * 5 * 3 * 3);
    }
}
