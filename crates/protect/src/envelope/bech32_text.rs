//! Bech32 (BIP 173) without its limit of length: the text form of age's keys.

use std::ops::RangeInclusive;

use bech32::primitives::checksum::Checksum;
use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};

/// Bech32's checksum for texts of any length that a key needs. It then finds fewer errors than in
/// short texts; a wrong key of this length would be found by its use.
enum LongBech32 {}

impl Checksum for LongBech32 {
    type MidstateRepr = <Bech32 as Checksum>::MidstateRepr;
    type CorrectionField = <Bech32 as Checksum>::CorrectionField;
    const ROOT_GENERATOR: Self::CorrectionField = Bech32::ROOT_GENERATOR;
    const ROOT_EXPONENTS: RangeInclusive<usize> = Bech32::ROOT_EXPONENTS;
    const CODE_LENGTH: usize = 4096;
    const CHECKSUM_LENGTH: usize = Bech32::CHECKSUM_LENGTH;
    const GENERATOR_SH: [u32; 5] = Bech32::GENERATOR_SH;
    const TARGET_RESIDUE: u32 = Bech32::TARGET_RESIDUE;
}

/// The text of a key. The prefixes are ours, so it cannot fail; it would be empty.
pub(super) fn encode(prefix: &str, bytes: &[u8]) -> String {
    let text = Hrp::parse(prefix).ok();
    let text = text.and_then(|prefix| bech32::encode_lower::<LongBech32>(prefix, bytes).ok());
    text.unwrap_or_default()
}

/// The prefix in small letters and the bytes of a text, if its checksum is right.
pub(super) fn decode(text: &str) -> Option<(String, Vec<u8>)> {
    let checked = CheckedHrpstring::new::<LongBech32>(text).ok()?;
    Some((checked.hrp().to_lowercase(), checked.byte_iter().collect()))
}
