//! The options of the verbs, as Python passes them: a dictionary with only what is given.

use std::path::PathBuf;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use refrain::{
    CompressOptions, Encryption, GenerationChoice, Identity, Level, PasswordSource, Purpose,
    ReadOptions, Recipient, TemporarySpace,
};
use refrain_pool::processors;

use crate::error::{to_python, usage};

/// The value of an option that was given.
fn given<'py, T>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>>
where
    T: FromPyObjectOwned<'py>,
{
    match options.get_item(name)? {
        Some(value) if !value.is_none() => match value.extract().map_err(Into::into) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_instance_of::<PyOverflowError>(options.py()) => {
                let text = format!("{value} is out of the range of {name}");
                Err(usage(options.py(), &text))
            }
            Err(error) => Err(error),
        },
        _ => Ok(None),
    }
}

fn threads(options: &Bound<'_, PyDict>) -> PyResult<usize> {
    let asked: Option<usize> = given(options, "threads")?;
    Ok(asked.filter(|&count| count > 0).unwrap_or_else(processors))
}

fn password(options: &Bound<'_, PyDict>) -> PyResult<Option<PasswordSource>> {
    let bytes: Option<Vec<u8>> = given(options, "password")?;
    Ok(bytes.map(|bytes| PasswordSource::from_bytes(&bytes)))
}

fn parsed<T: std::str::FromStr>(py: Python<'_>, text: &str) -> PyResult<T>
where
    T::Err: std::fmt::Display,
{
    text.parse()
        .map_err(|error: T::Err| usage(py, &error.to_string()))
}

fn encryption(options: &Bound<'_, PyDict>) -> PyResult<Option<Encryption>> {
    let py = options.py();
    let recipients: Option<Vec<String>> = given(options, "recipients")?;
    if recipients.as_ref().is_some_and(Vec::is_empty) {
        return Err(usage(py, "an empty list of recipients protects nothing"));
    }
    let recipients = recipients.unwrap_or_default();
    let recipients = recipients.iter().map(|text| parsed::<Recipient>(py, text));
    let recipients = recipients.collect::<PyResult<Vec<_>>>()?;
    let passwords: Vec<_> = password(options)?.into_iter().collect();
    let is_asked = !passwords.is_empty() || !recipients.is_empty();
    Ok(is_asked.then_some(Encryption {
        passwords,
        recipients,
        is_padded: false,
    }))
}

/// The options of compressing.
///
/// # Errors
/// `UsageError` for values that do not exist, `TypeError` for others.
pub fn for_compressing(options: &Bound<'_, PyDict>) -> PyResult<CompressOptions> {
    let py = options.py();
    let purpose: Option<String> = given(options, "purpose")?;
    let codec: Option<String> = given(options, "codec")?;
    let recovery: Option<String> = given(options, "recovery")?;
    let temporary: Option<PathBuf> = given(options, "temporary")?;
    let level: Option<u8> = given(options, "level")?;
    let built = CompressOptions {
        level: level.map_or_else(Level::default, Level),
        purpose: match purpose.as_deref() {
            None | Some("archive") => Purpose::Archive,
            Some("serve") => Purpose::Serve,
            Some(_) => return Err(usage(py, "the purpose is \"archive\" or \"serve\"")),
        },
        codec: codec.map(|text| parsed(py, &text)).transpose()?,
        block_bytes: given(options, "block_bytes")?,
        threads: threads(options)?,
        memory_bytes: given(options, "memory")?,
        reach_bytes: given(options, "reach")?,
        temporary: temporary.map(TemporarySpace::new),
        recovery: recovery.map(|text| parsed(py, &text)).transpose()?,
        encryption: encryption(options)?,
        ..CompressOptions::default()
    };
    built.check().map_err(|error| to_python(py, &error))?;
    Ok(built)
}

/// The options of reading.
///
/// # Errors
/// As [`for_compressing`].
pub fn for_reading(options: &Bound<'_, PyDict>) -> PyResult<ReadOptions> {
    let py = options.py();
    let default = ReadOptions::default();
    let identities: Vec<String> = given(options, "identities")?.unwrap_or_default();
    let identities = identities.iter().map(|text| parsed::<Identity>(py, text));
    let generation: Option<String> = given(options, "generation")?;
    Ok(ReadOptions {
        threads: threads(options)?,
        memory_bytes: given(options, "memory")?.unwrap_or(default.memory_bytes),
        temporary: given(options, "temporary")?,
        password: password(options)?,
        identities: identities.collect::<PyResult<Vec<_>>>()?,
        content_bytes_max: given(options, "content_max")?,
        generation: generation
            .map(|text| parsed(py, &text))
            .transpose()?
            .unwrap_or(GenerationChoice::Latest),
        ..default
    })
}
