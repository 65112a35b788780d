//! Recipes: how a header group differs from its prediction.
//!
//! ```text
//! recipe   (empty)                 the group is as predicted, zeros pad the data
//!          flags form…
//! flags    bit 0: no padding follows the data
//!          bit 1: the group follows; otherwise it is as predicted
//! ```

/// The data is not followed by zeros up to the next record.
const NO_PADDING: u8 = 1;
/// The group itself follows.
const RAW_GROUP: u8 = 2;

/// The recipe that makes `actual` of `predicted`.
pub(crate) fn make(predicted: &[u8], actual: &[u8]) -> Vec<u8> {
    match predicted == actual {
        true => Vec::new(),
        false => raw(actual),
    }
}

/// A recipe that holds the group.
pub(crate) fn raw(group: &[u8]) -> Vec<u8> {
    [&[RAW_GROUP], group].concat()
}

/// Adds to a recipe that the data has no padding.
pub(crate) fn set_no_padding(recipe: &mut Vec<u8>) {
    match recipe.first_mut() {
        Some(flags) => *flags |= NO_PADDING,
        None => recipe.push(NO_PADDING),
    }
}

/// Whether zeros pad the data.
pub(crate) fn has_padding(recipe: &[u8]) -> bool {
    recipe.first().is_none_or(|flags| flags & NO_PADDING == 0)
}

/// The group that a recipe makes of its prediction. `None` if the recipe is malformed.
pub(crate) fn apply(recipe: &[u8], predict: impl FnOnce() -> Vec<u8>) -> Option<Vec<u8>> {
    let Some((flags, rest)) = recipe.split_first() else {
        return Some(predict());
    };
    match flags & !NO_PADDING {
        0 if rest.is_empty() => Some(predict()),
        RAW_GROUP => Some(rest.to_vec()),
        _ => None,
    }
}
