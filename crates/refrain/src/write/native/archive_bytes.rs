//! Archive bytes on their way to the sink.
//!
//! The first bytes are held back, because a small archive is rewritten as a single Whole frame once
//! complete.

use refrain_storage::Sink;

use crate::error::Result;

/// The maximum size of an archive that may become a Whole frame. Such a frame has at most an eighth
/// of that: frame headers, index and tail disappear.
const RETAINED_BYTES_MAX: usize = 128 << 10;

/// Bytes held back at first, and written to the sink when there are too many.
pub(crate) struct ArchiveBytes<'a> {
    sink: &'a mut dyn Sink,
    /// Everything so far; `None` once written to the sink.
    retained: Option<Vec<u8>>,
}

impl<'a> ArchiveBytes<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink) -> ArchiveBytes<'a> {
        ArchiveBytes {
            sink,
            retained: Some(vec![]),
        }
    }

    /// Bytes behind those of earlier generations: they never become a Whole frame.
    pub(crate) fn behind_others(sink: &'a mut dyn Sink) -> ArchiveBytes<'a> {
        ArchiveBytes {
            sink,
            retained: None,
        }
    }

    /// Whether the sink has nothing yet.
    pub(crate) fn is_retained(&self) -> bool {
        self.retained.is_some()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(retained) = &mut self.retained {
            if retained.len() + bytes.len() <= RETAINED_BYTES_MAX {
                retained.extend_from_slice(bytes);
                return Ok(());
            }
            let retained = std::mem::take(retained);
            self.retained = None;
            self.sink.write_all(&retained)?;
        }
        Ok(self.sink.write_all(bytes)?)
    }

    /// Completes the output. If it was held back, it is the whole archive, and `smaller` may return
    /// another form of it. Returns the number of bytes in the sink, if it has that form.
    pub(crate) fn publish(
        self,
        smaller: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<Option<u64>> {
        let mut bytes = None;
        if let Some(retained) = self.retained {
            let other = smaller(&retained);
            bytes = other.as_ref().map(|other| other.len() as u64);
            self.sink.write_all(other.as_ref().unwrap_or(&retained))?;
        }
        self.sink.publish()?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::MemorySink;

    /// What the sink has after writing pieces of these lengths.
    fn published(lengths: &[usize], becomes: Option<&[u8]>) -> (Vec<u8>, Option<u64>) {
        let mut sink = MemorySink::new();
        let output = sink.output();
        let mut bytes = ArchiveBytes::new(&mut sink);
        for (number, &length) in lengths.iter().enumerate() {
            bytes.write(&vec![number as u8; length]).expect("memory");
        }
        let count = bytes.publish(|_| becomes.map(<[u8]>::to_vec));
        (
            output.published().expect("published"),
            count.expect("memory"),
        )
    }

    #[test]
    fn few_bytes_can_be_replaced_at_the_end() {
        assert_eq!(published(&[2, 1], None), (vec![0, 0, 1], None));
        assert_eq!(published(&[2, 1], Some(b"x")), (vec![b'x'], Some(1)));
        assert_eq!(published(&[], Some(b"")), (vec![], Some(0)));
    }

    #[test]
    fn many_bytes_are_written_as_they_come() {
        let (bytes, replaced) = published(&[RETAINED_BYTES_MAX, 1, 2], Some(b"x"));
        assert_eq!(bytes.len(), RETAINED_BYTES_MAX + 3);
        assert_eq!(bytes[RETAINED_BYTES_MAX..], [1, 2, 2]);
        assert_eq!(replaced, None);
    }
}
