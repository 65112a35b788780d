//! The decoders of an archive that is continued.

use std::collections::BTreeSet;

use refrain_codec::CodecId;
use refrain_format::DecoderRole;

use crate::error::Result;
use crate::read::native::indexed::IndexedArchive;
use crate::write::native::carried::EarlierDecoders;
use crate::write::native::extents::extents_codec;
use crate::write::tree::entry_list::ENTRIES_CODEC;

/// What a generation needs to know to carry decoders, if it is to or the archive carries some.
///
/// # Errors
/// From reading the archive.
pub(crate) fn earlier_decoders(
    archive: &IndexedArchive,
    is_wanted: bool,
    is_readable: bool,
) -> Result<Option<EarlierDecoders>> {
    // What cannot be read is carried once more.
    let carried = if is_readable { archive.carried_decoders()? } else { Vec::new() };
    let carries_some = !carried.is_empty() || (!is_readable && archive.has_decoder_frames());
    if !carries_some && !is_wanted {
        return Ok(None);
    }
    Ok(Some(EarlierDecoders {
        carried,
        // Whoever carries some carries all.
        needed: if carries_some { Vec::new() } else { needed_decoders(archive)? },
    }))
}

/// What the frames of an archive need: the index states it for blocks, and lists are coded as
/// writers of this version do it.
fn needed_decoders(archive: &IndexedArchive) -> Result<Vec<DecoderRole>> {
    let mut needed = BTreeSet::new();
    if !archive.kept_generations().is_empty() {
        let lists = [extents_codec(CodecId::NONE), ENTRIES_CODEC];
        needed.extend(lists.map(|codec| DecoderRole::Codec(codec.0)));
    }
    archive.for_each_coding(&mut |codec, filters| {
        let extents = extents_codec(CodecId(codec)).0;
        needed.extend([codec, extents].map(DecoderRole::Codec));
        let filters = filters.into_iter().filter(|&id| id > 0);
        needed.extend(filters.map(DecoderRole::Filter));
    })?;
    Ok(needed.into_iter().collect())
}
