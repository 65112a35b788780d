//! Frame output: frames are encoded in any order and written in the order in which their tickets
//! were reserved.

use std::collections::{HashMap, VecDeque};

use refrain_format::{
    ArchiveAssembler, ArchiveHeader, BlockHeader, EntriesHeader, EpochSums, ExtentsHeader, Index,
    MemberEnd, MemberStart,
};
use refrain_pool::stages::stage;
use refrain_storage::Sink;

use crate::error::{Error, Result};
use crate::store::block::BlockFrame;

/// A frame to be written. It gets its sequence number when it is written.
pub(crate) enum Frame {
    MemberStart(MemberStart),
    Entries(EntriesHeader, Vec<u8>),
    MemberEnd(MemberEnd),
    Block(BlockHeader, BlockFrame),
    Extents(ExtentsHeader, EpochSums, Vec<u8>),
}

/// A block that was written.
pub(crate) struct WrittenBlock {
    pub header: BlockHeader,
    pub offset: u64,
    pub frame: BlockFrame,
}

/// The frame that was written.
pub(crate) enum Written {
    Block(WrittenBlock),
    Extents,
    Other,
}

/// A position in the order of frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ticket(u64);

/// Writes frames in the order of their tickets.
pub(crate) struct Output<'a> {
    sink: &'a mut dyn Sink,
    archive: ArchiveAssembler,
    order: VecDeque<Ticket>,
    done: HashMap<Ticket, Frame>,
    next_ticket: u64,
}

impl<'a> Output<'a> {
    /// Begins the archive.
    pub(crate) fn begin(sink: &'a mut dyn Sink, header: &ArchiveHeader) -> Result<Output<'a>> {
        let (archive, bytes) = ArchiveAssembler::new(header, 0)?;
        sink.write_all(&bytes)?;
        Ok(Output {
            sink,
            archive,
            order: VecDeque::new(),
            done: HashMap::new(),
            next_ticket: 0,
        })
    }

    /// The number of archive bytes written so far.
    pub(crate) fn archive_bytes(&self) -> u64 {
        self.archive.archive_bytes()
    }

    /// The index so far.
    pub(crate) fn index(&self) -> &Index {
        self.archive.index()
    }

    /// Reserves the next position.
    pub(crate) fn reserve(&mut self) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.order.push_back(ticket);
        ticket
    }

    /// Sets the frame of a ticket.
    pub(crate) fn fill(&mut self, ticket: Ticket, frame: Frame) {
        self.done.insert(ticket, frame);
    }

    /// Adds a frame at the next position.
    pub(crate) fn push(&mut self, frame: Frame) {
        let ticket = self.reserve();
        self.fill(ticket, frame);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Writes the next frame, if it is encoded.
    pub(crate) fn write_next(&mut self) -> Result<Option<Written>> {
        let Some(frame) = self
            .order
            .front()
            .and_then(|ticket| self.done.remove(ticket))
        else {
            return Ok(None);
        };
        self.order.pop_front();
        let offset = self.archive_bytes();
        let mut stage = stage("write", 0);
        let written = self.write(frame);
        stage.add_bytes(self.archive_bytes() - offset);
        written.map(Some).map_err(|error| error.at_offset(offset))
    }

    fn write(&mut self, frame: Frame) -> Result<Written> {
        let offset = self.archive_bytes();
        match frame {
            Frame::MemberStart(start) => {
                self.sink.write_all(&self.archive.member_start(&start)?)?
            }
            Frame::MemberEnd(end) => self.sink.write_all(&self.archive.member_end(&end)?)?,
            Frame::Entries(header, mut bytes) => {
                self.archive.entries(&header, &mut bytes)?;
                self.sink.write_all(&bytes)?;
            }
            Frame::Extents(header, sums, mut bytes) => {
                self.archive.extents(&header, &sums, &mut bytes)?;
                self.sink.write_all(&bytes)?;
                return Ok(Written::Extents);
            }
            Frame::Block(header, mut frame) => {
                let detached_bytes = frame.stored_bytes();
                self.archive
                    .block(&header, &mut frame.bytes, detached_bytes)?;
                self.sink.write_all(&frame.bytes)?;
                for page in &frame.stored {
                    self.sink.write_all(page)?;
                }
                return Ok(Written::Block(WrittenBlock {
                    header,
                    offset,
                    frame,
                }));
            }
        }
        Ok(Written::Other)
    }

    /// Writes the index and the end, and publishes the archive. Returns its length and its index.
    pub(crate) fn publish(self) -> Result<(u64, Index)> {
        let offset = self.archive_bytes();
        let (bytes, index) = self.archive.finish()?;
        self.sink
            .write_all(&bytes)
            .map_err(|error| Error::from(error).at_offset(offset))?;
        self.sink.publish()?;
        Ok((offset + bytes.len() as u64, index))
    }
}
