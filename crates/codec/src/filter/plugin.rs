//! Filters of plug-ins: what they are, and the table of those that were added.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use crate::error::{Error, PluginKind, Result};
use crate::host::Host;
use crate::id::PLUGIN_FILTERS;

/// The properties of a filter of a plug-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterDescription {
    /// The number in archives, one of `FilterStep::PLUGINS`.
    pub id: u8,
    /// The name in options and listings.
    pub name: &'static str,
    /// Its parameters. A filter whose only one is 0 is named without it.
    pub parameters: RangeInclusive<u8>,
}

impl FilterDescription {
    /// Whether there is more than one parameter.
    pub(crate) fn has_parameter(&self) -> bool {
        self.parameters != (0..=0)
    }
}

/// A filter of a plug-in. Unlike those of this crate it may fail, and does not restore prefixes.
///
/// Blocks have 1 to `MAX_RAW_LENGTH_BYTES` bytes, and parameters are those of the description.
pub trait PluginFilter: Sync {
    /// The number, name and parameters, which never change.
    fn describe(&self) -> FilterDescription;

    /// Filters a block in place.
    ///
    /// # Errors
    /// `FilterFailed`; the bytes are then undefined.
    fn encode(&self, host: Host, param: u8, bytes: &mut [u8]) -> Result<()>;

    /// Reverses `encode`. The bytes may be anything.
    ///
    /// # Errors
    /// As `encode`.
    fn decode(&self, host: Host, param: u8, bytes: &mut [u8]) -> Result<()>;

    /// An upper bound on the working memory of both, in bytes, without the block.
    fn memory_bytes(&self) -> u64;
}

const FIRST: u8 = *PLUGIN_FILTERS.start();
const PLUGINS_MAX: usize = (*PLUGIN_FILTERS.end() - FIRST) as usize + 1;

/// Filters of plug-ins, by their number from the first on.
static PLUGINS: [OnceLock<&'static dyn PluginFilter>; PLUGINS_MAX] =
    [const { OnceLock::new() }; PLUGINS_MAX];

/// Adds a filter whose name no other has.
///
/// # Errors
/// As [`check_number`].
pub(crate) fn add(filter: &'static dyn PluginFilter) -> Result<()> {
    let id = filter.describe().id;
    let slot = free_slot(id)?;
    // Another thread may have been quicker.
    slot.set(filter).or_else(|_| check_number(id))
}

/// Checks that a filter with this number can be added.
///
/// # Errors
/// `PluginNumber`, `PluginNumberTaken`.
pub(crate) fn check_number(id: u8) -> Result<()> {
    free_slot(id).map(drop)
}

fn free_slot(id: u8) -> Result<&'static OnceLock<&'static dyn PluginFilter>> {
    let (kind, number) = (PluginKind::Filter, u32::from(id));
    let slot = slot(id).ok_or(Error::PluginNumber { kind, number })?;
    match slot.get() {
        Some(other) => Err(Error::PluginNumberTaken {
            kind,
            number,
            by: other.describe().name,
        }),
        None => Ok(slot),
    }
}

fn slot(id: u8) -> Option<&'static OnceLock<&'static dyn PluginFilter>> {
    PLUGINS.get(usize::from(id.checked_sub(FIRST)?))
}

/// Returns the filter with this number.
///
/// # Errors
/// `UnsupportedFilter`.
pub(crate) fn by_id(id: u8) -> Result<&'static dyn PluginFilter> {
    let filter = slot(id).and_then(OnceLock::get).copied();
    filter.ok_or(Error::UnsupportedFilter(id))
}

/// The filters that were added, by rising number.
pub(crate) fn plugin_filters() -> impl Iterator<Item = &'static dyn PluginFilter> {
    PLUGINS.iter().filter_map(|slot| slot.get().copied())
}
