//! Recipes: how a header group differs from its prediction.
//!
//! ```text
//! recipe    (empty)                   the group is as predicted, zeros pad the data
//!           flags rest
//! flags     bit 0: no padding follows the data
//!           bit 1: rest is the group
//!           bit 2: rest is sections patch…
//!           otherwise rest is empty and the group as predicted
//! sections  0                         the extended headers are as predicted
//!           1 values                  …but for values of the pax header
//!           2 + count, count × (flag data)
//! data      0                         as predicted for the first header with this flag
//!           1 prefix suffix length bytes   its prefix, the bytes, its suffix
//! values    count × (2 × records skipped + form, change)
//! change    prefix length bytes       form 0: the prefix of the predicted value, then the bytes
//!           delta                     form 1: a time, as a difference in ns, signs zigzag
//! patch     gap length bytes          bytes of the assembled group
//! ```
//!
//! All numbers are LEB128.

use crate::entry::{Entry, Timestamp};
use crate::tar::group::{Extension, extension_at};
use crate::tar::pax::{parse_pax_time, pax_time, push_pax, split_pax};
use crate::tar::predict::{Predictor, Section};

/// The data is not followed by zeros up to the next record.
const NO_PADDING: u8 = 1;
/// The group itself follows.
const RAW_GROUP: u8 = 2;
/// Changes of the prediction follow.
const EDITS: u8 = 4;

/// Sections are as predicted, except for values of the pax header.
const SECTIONS_VALUES: u64 = 1;
/// Added to the number of sections that follow.
const SECTIONS_LISTED: u64 = 2;
const SECTIONS_MAX: u64 = 8;
/// Shorter runs of equal bytes cost less inside a patch than another patch.
const PATCH_GAP_MIN: usize = 3;

/// The recipe that turns the prediction into `actual`.
pub(crate) fn make(predictor: &Predictor, entry: &Entry, actual: &[u8]) -> Vec<u8> {
    let predicted = predictor.sections(entry);
    let edits = if has_sections(actual, &predicted) {
        let assembled = predictor.assemble(entry, &predicted);
        if assembled == actual {
            return Vec::new();
        }
        edits(&predicted, &predicted, &assembled, actual)
    } else {
        actual_sections(actual).and_then(|sections| {
            let assembled = predictor.assemble(entry, &sections);
            edits(&predicted, &sections, &assembled, actual)
        })
    };
    match edits.filter(|edits| edits.len() <= actual.len()) {
        Some(edits) => edits,
        None => raw(actual),
    }
}

fn has_sections(group: &[u8], sections: &[Section]) -> bool {
    let mut at = 0;
    for section in sections {
        match extension_at(group, at) {
            Some(extension)
                if extension.flag == section.flag
                    && group.get(extension.data.clone()) == Some(&section.data) =>
            {
                at = extension.end();
            }
            _ => return false,
        }
    }
    extension_at(group, at).is_none()
}

pub(crate) fn raw(group: &[u8]) -> Vec<u8> {
    [&[RAW_GROUP], group].concat()
}

pub(crate) fn set_no_padding(recipe: &mut Vec<u8>) {
    match recipe.first_mut() {
        Some(flags) => *flags |= NO_PADDING,
        None => recipe.push(NO_PADDING),
    }
}

pub(crate) fn has_padding(recipe: &[u8]) -> bool {
    recipe.first().is_none_or(|flags| flags & NO_PADDING == 0)
}

/// The group that a recipe holds, if no padding follows the data.
pub(crate) fn unpadded_group(recipe: &[u8]) -> Option<&[u8]> {
    let (flags, group) = recipe.split_first()?;
    (*flags == RAW_GROUP | NO_PADDING).then_some(group)
}

/// The group that a recipe makes from its prediction. `None` if the recipe is malformed.
pub(crate) fn apply(recipe: &[u8], predictor: &Predictor, entry: &Entry) -> Option<Vec<u8>> {
    let predicted = || predictor.assemble(entry, &predictor.sections(entry));
    let Some((flags, rest)) = recipe.split_first() else {
        return Some(predicted());
    };
    match flags & !NO_PADDING {
        0 if rest.is_empty() => Some(predicted()),
        RAW_GROUP => Some(rest.to_vec()),
        EDITS => {
            let mut rest = Reader { rest };
            let sections = read_sections(&mut rest, predictor.sections(entry))?;
            let mut group = predictor.assemble(entry, &sections);
            patch(&mut group, rest)?;
            Some(group)
        }
        _ => None,
    }
}

// ------------------------------------------------------------------------------------- making

/// The recipe for these sections, and for differences from the group assembled from them.
fn edits(
    predicted: &[Section],
    sections: &[Section],
    assembled: &[u8],
    actual: &[u8],
) -> Option<Vec<u8>> {
    if assembled.len() != actual.len() {
        return None;
    }
    let mut recipe = vec![EDITS];
    push_sections(&mut recipe, predicted, sections);
    push_patches(&mut recipe, assembled, actual);
    Some(recipe)
}

fn actual_sections(group: &[u8]) -> Option<Vec<Section>> {
    let mut sections = Vec::new();
    let mut at = 0;
    while let Some(extension) = extension_at(group, at) {
        sections.push(Section {
            flag: extension.flag,
            data: group.get(extension.data.clone())?.to_vec(),
        });
        at = extension.end();
    }
    (sections.len() as u64 <= SECTIONS_MAX).then_some(sections)
}

fn push_sections(recipe: &mut Vec<u8>, predicted: &[Section], actual: &[Section]) {
    if predicted == actual {
        return push_number(recipe, 0);
    }
    if let Some(values) = values(predicted, actual) {
        push_number(recipe, SECTIONS_VALUES);
        recipe.extend_from_slice(&values);
        return;
    }
    push_number(recipe, SECTIONS_LISTED + actual.len() as u64);
    for section in actual {
        recipe.push(section.flag);
        push_data(recipe, base(predicted, section.flag), &section.data);
    }
}

/// The predicted data of the first section with this flag.
fn base(predicted: &[Section], flag: u8) -> &[u8] {
    let section = predicted.iter().find(|section| section.flag == flag);
    section.map_or(&[], |section| &section.data)
}

fn push_data(recipe: &mut Vec<u8>, base: &[u8], data: &[u8]) {
    if base == data {
        return push_number(recipe, 0);
    }
    let prefix = shared_prefix(base, data);
    let (base_rest, data_rest) = (base.get(prefix..), data.get(prefix..));
    let (base_rest, data_rest) = (base_rest.unwrap_or_default(), data_rest.unwrap_or_default());
    let suffix = (base_rest.iter().rev().zip(data_rest.iter().rev()))
        .take_while(|(left, right)| left == right)
        .count();
    let middle = data_rest
        .get(..data_rest.len() - suffix)
        .unwrap_or_default();
    push_number(recipe, 1);
    push_number(recipe, prefix as u64);
    push_number(recipe, suffix as u64);
    push_bytes(recipe, middle);
}

fn shared_prefix(left: &[u8], right: &[u8]) -> usize {
    let pairs = left.iter().zip(right);
    pairs.take_while(|(left, right)| left == right).count()
}

/// The changed values of the pax header, if sections and keys are as predicted.
fn values(predicted: &[Section], actual: &[Section]) -> Option<Vec<u8>> {
    let is_pax = |section: &Section| section.flag == b'x';
    let mut pairs = predicted.iter().zip(actual);
    let is_rest_equal = predicted.len() == actual.len()
        && pairs.all(|(left, right)| left.flag == right.flag && (left == right || is_pax(left)));
    if !is_rest_equal {
        return None;
    }
    let predicted = records(base(predicted, b'x'))?;
    let actual = records(base(actual, b'x'))?;
    let mut changes = Vec::new();
    let mut count = 0;
    let mut skipped = 0;
    if predicted.len() != actual.len() {
        return None;
    }
    for ((key, old), (actual_key, new)) in predicted.into_iter().zip(actual) {
        if key != actual_key {
            return None;
        }
        if old == new {
            skipped += 1;
            continue;
        }
        push_change(&mut changes, skipped, old, new);
        count += 1;
        skipped = 0;
    }
    let mut values = Vec::new();
    push_number(&mut values, count);
    values.extend_from_slice(&changes);
    Some(values)
}

fn push_change(changes: &mut Vec<u8>, skipped: u64, old: &[u8], new: &[u8]) {
    match time_delta(old, new) {
        Some(delta) => {
            push_number(changes, 2 * skipped + 1);
            push_number(changes, ((delta << 1) ^ (delta >> 63)) as u64);
        }
        None => {
            let prefix = shared_prefix(old, new);
            push_number(changes, 2 * skipped);
            push_number(changes, prefix as u64);
            push_bytes(changes, new.get(prefix..).unwrap_or_default());
        }
    }
}

/// The difference of two times that are written in the usual form.
fn time_delta(old: &[u8], new: &[u8]) -> Option<i64> {
    let nanoseconds = |time: Timestamp| {
        i128::from(time.seconds) * i128::from(Timestamp::NANOSECONDS_END)
            + i128::from(time.nanoseconds)
    };
    let (old, new_time) = (parse_pax_time(old)?, parse_pax_time(new)?);
    let delta = i64::try_from(nanoseconds(new_time) - nanoseconds(old)).ok()?;
    (pax_time(new_time) == new).then_some(delta)
}

/// Keys and values of pax records. `None` if they would not be written in the same way.
fn records(data: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut records = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        let (key, value, after) = split_pax(rest)?;
        // Lengths may have leading zeros.
        (rest.first() != Some(&b'0')).then_some(())?;
        records.push((key, value));
        rest = after;
    }
    Some(records)
}

fn push_patches(recipe: &mut Vec<u8>, assembled: &[u8], actual: &[u8]) {
    let is_different = |at: &usize| assembled.get(*at) != actual.get(*at);
    let mut done = 0;
    while let Some(start) = (done..actual.len()).find(is_different) {
        let mut end = start + 1;
        while let Some(next) = (end..actual.len().min(end + PATCH_GAP_MIN)).find(is_different) {
            end = next + 1;
        }
        push_number(recipe, (start - done) as u64);
        push_bytes(recipe, actual.get(start..end).unwrap_or_default());
        done = end;
    }
}

fn push_number(recipe: &mut Vec<u8>, number: u64) {
    let mut rest = number;
    while rest >= 0x80 {
        recipe.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    recipe.push(rest as u8);
}

fn push_bytes(recipe: &mut Vec<u8>, bytes: &[u8]) {
    push_number(recipe, bytes.len() as u64);
    recipe.extend_from_slice(bytes);
}

// ------------------------------------------------------------------------------------ applying

/// The unread part of a recipe.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            number |= bits << shift;
            if byte < 0x80 {
                let is_shortest = byte > 0 || shift == 0;
                return (is_shortest && number >> shift == bits).then_some(number);
            }
        }
        None
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// A length and that many bytes.
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }
}

fn read_sections(rest: &mut Reader, predicted: Vec<Section>) -> Option<Vec<Section>> {
    let count = match rest.number()? {
        0 => return Some(predicted),
        SECTIONS_VALUES => return read_values(rest, predicted),
        code => code - SECTIONS_LISTED,
    };
    if count > SECTIONS_MAX {
        return None;
    }
    let mut sections = Vec::new();
    for _ in 0..count {
        let flag = rest.byte().filter(|flag| Extension::is_flag(*flag))?;
        let data = read_data(rest, base(&predicted, flag))?;
        sections.push(Section { flag, data });
    }
    Some(sections)
}

fn read_data(rest: &mut Reader, base: &[u8]) -> Option<Vec<u8>> {
    match rest.number()? {
        0 => Some(base.to_vec()),
        1 => {
            let (prefix, suffix) = (rest.length()?, rest.length()?);
            let middle = rest.bytes()?;
            let suffix_at = base.len().checked_sub(suffix)?;
            Some([base.get(..prefix)?, middle, base.get(suffix_at..)?].concat())
        }
        _ => None,
    }
}

fn read_values(rest: &mut Reader, mut predicted: Vec<Section>) -> Option<Vec<Section>> {
    let section = predicted.iter_mut().find(|section| section.flag == b'x')?;
    let mut data = Vec::with_capacity(section.data.len());
    let old = records(&section.data)?;
    let mut old = old.into_iter();
    for _ in 0..rest.number()? {
        let code = rest.number()?;
        for _ in 0..code / 2 {
            let (key, value) = old.next()?;
            push_pax(&mut data, key, value);
        }
        let (key, value) = old.next()?;
        let value = read_change(rest, value, code % 2 == 1)?;
        push_pax(&mut data, key, &value);
    }
    for (key, value) in old {
        push_pax(&mut data, key, value);
    }
    section.data = data;
    Some(predicted)
}

fn read_change(rest: &mut Reader, old: &[u8], is_time: bool) -> Option<Vec<u8>> {
    if !is_time {
        let prefix = rest.length()?;
        return Some([old.get(..prefix)?, rest.bytes()?].concat());
    }
    let code = rest.number()?;
    let delta = (code >> 1) as i64 ^ -((code & 1) as i64);
    let second = i128::from(Timestamp::NANOSECONDS_END);
    let old = parse_pax_time(old)?;
    let nanoseconds =
        i128::from(old.seconds) * second + i128::from(old.nanoseconds) + i128::from(delta);
    let time = Timestamp {
        seconds: i64::try_from(nanoseconds.div_euclid(second)).ok()?,
        nanoseconds: u32::try_from(nanoseconds.rem_euclid(second)).ok()?,
    };
    Some(pax_time(time))
}

fn patch(group: &mut [u8], mut rest: Reader) -> Option<()> {
    let mut at = 0_usize;
    while !rest.rest.is_empty() {
        at = at.checked_add(rest.length()?)?;
        let bytes = rest.bytes()?;
        let end = at.checked_add(bytes.len())?;
        group.get_mut(at..end)?.copy_from_slice(bytes);
        at = end;
    }
    Some(())
}
