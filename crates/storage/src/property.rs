//! Properties of every sink, checked with arbitrary bytes: for property tests and fuzz targets of
//! this crate and others.

use crate::sink::Sink;
use crate::source::Source;

/// One write operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteStep {
    /// [`Sink::write_all`] of these bytes.
    Bytes(Vec<u8>),
    /// [`Sink::write_zeros`] of this many bytes.
    Zeros(u32),
}

/// Lengths near which errors are likely: pages, blocks, the buffers of this crate.
const EDGE_LENGTHS: [u32; 8] = [0, 40, 4096, 8192, 16_384, 65_536, 131_072, 262_144];

impl WriteStep {
    /// Decodes steps from arbitrary bytes, four for each: kind, edge length, distance, fill byte.
    pub fn decode(bytes: &[u8]) -> Vec<WriteStep> {
        let (quadruples, _) = bytes.as_chunks::<4>();
        quadruples
            .iter()
            .map(|four| WriteStep::from_bytes(*four))
            .collect()
    }

    fn from_bytes([what, edge, distance, filling]: [u8; 4]) -> WriteStep {
        let edge = EDGE_LENGTHS[usize::from(edge) % EDGE_LENGTHS.len()];
        let length = (edge + u32::from(distance % 16)).saturating_sub(8);
        match what % 4 {
            0 => WriteStep::Zeros(length),
            1 => WriteStep::Bytes(vec![0; length as usize]),
            2 => WriteStep::Bytes(vec![filling; length as usize]),
            _ => WriteStep::Bytes((0..length).map(|at| (at >> 8) as u8 ^ filling).collect()),
        }
    }
}

/// Applies `steps` to `sink` and returns the expected content. If the sink supports it, reads back
/// and compares the end of the content after every step, and finally all of it.
///
/// # Errors
/// The first mismatch or failure, as text.
pub fn sink_holds_what_was_written(
    sink: &mut dyn Sink,
    steps: &[WriteStep],
) -> Result<Vec<u8>, String> {
    let mut model = Vec::new();
    let view = sink.read_back();
    for (number, step) in steps.iter().enumerate() {
        let written = match step {
            WriteStep::Bytes(bytes) => {
                model.extend_from_slice(bytes);
                sink.write_all(bytes)
            }
            WriteStep::Zeros(length) => {
                model.resize(model.len() + *length as usize, 0);
                sink.write_zeros(u64::from(*length))
            }
        };
        written.map_err(|error| format!("step {number}: {error}"))?;
        if let Some(view) = &view {
            let last = model.len().saturating_sub(5000);
            source_equals(&**view, &model, last)
                .map_err(|text| format!("step {number}: {text}"))?;
        }
    }
    if let Some(view) = &view {
        source_equals(&**view, &model, 0)?;
    }
    Ok(model)
}

/// Checks that `source` holds `expected`, from `offset` to past its end.
///
/// # Errors
/// The mismatch or failure, as text.
pub fn source_equals(source: &dyn Source, expected: &[u8], offset: usize) -> Result<(), String> {
    let size = source.size_bytes().map_err(|error| error.to_string())?;
    if size != expected.len() as u64 {
        return Err(format!("size is {size}, expected {}", expected.len()));
    }
    let mut buffer = vec![0xa5; expected.len() - offset + 1];
    let read = source.read_at(offset as u64, &mut buffer);
    let count = read.map_err(|error| error.to_string())?;
    if buffer[..count] != expected[offset..] {
        return Err(format!(
            "{count} bytes at {offset} are not what was written"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AtomicFile, FaultPlan, FaultySink, FileSource, Latch, MemorySink, OutputOptions,
        StreamSink, Temporary,
    };
    use proptest::prelude::*;

    fn published_file(
        steps: &[WriteStep],
        sparse: bool,
        temporary: Temporary,
    ) -> Result<(), String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let options = OutputOptions {
            sparse,
            temporary,
            ..OutputOptions::default()
        };
        let mut file = AtomicFile::create(&path, &options).unwrap();
        let model = sink_holds_what_was_written(&mut file, steps)?;
        file.publish().unwrap();
        let source = FileSource::open(&path).unwrap();
        source_equals(&source, &model, 0)?;
        holes_are_zero(&source, &model)
    }

    /// Everything outside the data ranges of the source must be zero.
    fn holes_are_zero(source: &dyn Source, model: &[u8]) -> Result<(), String> {
        let mut offset = 0;
        while offset < model.len() {
            let next = source.next_data(offset as u64).unwrap();
            let (start, end) = next.unwrap_or((model.len() as u64, model.len() as u64));
            if model[offset..start as usize].iter().any(|byte| *byte != 0) {
                return Err(format!("data in the hole at {offset}..{start}"));
            }
            offset = end as usize;
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn files_hold_what_was_written(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
            sparse: bool,
            hidden: bool,
        ) {
            let temporary = if hidden { Temporary::Hidden } else { Temporary::Unnamed };
            let result = published_file(&WriteStep::decode(&bytes), sparse, temporary);
            prop_assert_eq!(result, Ok(()));
        }

        #[test]
        fn memory_holds_what_was_written_despite_short_transfers(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
            seed: u64,
        ) {
            let memory = MemorySink::new();
            let output = memory.output();
            let plan = FaultPlan::new(seed).short_transfers().interruptions();
            let mut sink = Latch::new(FaultySink::new(memory, plan));
            let model = sink_holds_what_was_written(&mut sink, &WriteStep::decode(&bytes));
            sink.publish().unwrap();
            prop_assert_eq!(output.published().unwrap(), model.unwrap());
        }

        #[test]
        fn streams_carry_what_was_written(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut carried = Vec::new();
            let mut sink = StreamSink::new(&mut carried, "stream");
            let model = sink_holds_what_was_written(&mut sink, &WriteStep::decode(&bytes));
            sink.publish().unwrap();
            prop_assert_eq!(carried, model.unwrap());
        }
    }

    #[test]
    fn a_sink_that_loses_a_byte_is_caught() {
        struct Lossy(MemorySink);
        impl Sink for Lossy {
            fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
                self.0
                    .write_all(bytes.split_last().map_or(bytes, |(_, rest)| rest))
            }
            fn write_zeros(&mut self, length_bytes: u64) -> std::io::Result<()> {
                self.0.write_zeros(length_bytes)
            }
            fn read_back(&self) -> Option<std::sync::Arc<dyn Source>> {
                self.0.read_back()
            }
            fn publish(&mut self) -> std::io::Result<()> {
                self.0.publish()
            }
        }
        let steps = [WriteStep::Zeros(3), WriteStep::Bytes(vec![1, 2])];
        let error = sink_holds_what_was_written(&mut Lossy(MemorySink::new()), &steps).unwrap_err();
        assert!(error.contains("step 1: size is 4, expected 5"), "{error}");
    }
}
