//! Masks frames whose data looks like the start of a frame of their own archive.

use refrain_format::{
    BlockHeader, Coding, ExtentsHeader, FRAME_HEADER_BYTES, FrameKind, SplitPayload,
    frame_with_parity, mask_for,
};

use crate::error::Result;
use crate::store::block::BlockFrame;
use crate::write::native::output::Frame;

impl Frame {
    /// The frame, masked if its data contains the start of a frame of this archive.
    pub(crate) fn masked_for(self, archive_id: u32) -> Result<Frame> {
        Ok(match self {
            Frame::Block(header, frame) if frame.has_sync => {
                match mask_for(frame.data_parts(), archive_id) {
                    0 => Frame::Block(header, frame),
                    mask => masked_block(header, frame, mask)?,
                }
            }
            Frame::Extents(mut header, sums, mut bytes) => {
                if let Some(data) = masked_data(&bytes, &mut header.coding, archive_id) {
                    let mut builder = ExtentsHeader::builder(Vec::new());
                    builder.payload().extend(data);
                    bytes = frame_with_parity(FrameKind::Extents, &header.finish(builder)?)?;
                }
                Frame::Extents(header, sums, bytes)
            }
            Frame::Entries(mut header, mut bytes) => {
                if let Some(data) = masked_data(&bytes, &mut header.coding, archive_id) {
                    bytes = frame_with_parity(FrameKind::Entries, &header.frame_of(&data)?)?;
                }
                Frame::Entries(header, bytes)
            }
            Frame::Block(..)
            | Frame::MemberStart(_)
            | Frame::MemberEnd(..)
            | Frame::Anchors(_)
            | Frame::Pieces(_) => self,
        })
    }
}

fn masked_block(mut header: BlockHeader, frame: BlockFrame, mask: u8) -> Result<Frame> {
    header.coding = header.coding.with_mask(mask);
    let mut builder = BlockHeader::builder(Vec::new(), header.raw_bytes);
    for part in frame.data_parts() {
        builder
            .payload()
            .extend(part.iter().map(|byte| byte ^ mask));
    }
    let masked = BlockFrame {
        bytes: header.finish(builder, &frame.page_checksums)?,
        stored: vec![],
        ..frame
    };
    Ok(Frame::Block(header, masked))
}

/// The data of a frame, with a mask if it needs one, which `coding` then states.
fn masked_data(frame: &[u8], coding: &mut Coding, archive_id: u32) -> Option<Vec<u8>> {
    let data = SplitPayload::new(frame.get(FRAME_HEADER_BYTES..)?)
        .ok()?
        .data;
    match mask_for(std::iter::once(data), archive_id) {
        0 => None,
        mask => {
            *coding = coding.with_mask(mask);
            Some(data.iter().map(|byte| byte ^ mask).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use refrain_format::{
        EntriesHeader, EpochSums, Limits, Payload, SYNC, finish_header, pack_entries, read_frame,
    };

    use super::*;

    const ID: u32 = 0xa1b2_c3d4;

    fn own_start() -> Vec<u8> {
        [&SYNC[..], &ID.to_le_bytes()].concat()
    }

    fn bytes_of(frame: Frame) -> Vec<u8> {
        let mut bytes = match frame {
            Frame::Entries(_, bytes) | Frame::Extents(_, _, bytes) => bytes,
            Frame::Block(_, frame) => frame.joined().to_vec(),
            Frame::MemberStart(_) | Frame::MemberEnd(..) | Frame::Anchors(_) | Frame::Pieces(_) => {
                vec![]
            }
        };
        finish_header(&mut bytes, ID, 3);
        bytes
    }

    /// Checks that the frame begins like a frame of the archive, that nothing inside does, and that
    /// its data without the mask is `data`.
    fn check(frame: Frame, mask: u8, data: &[u8]) {
        let bytes = bytes_of(frame.masked_for(ID).unwrap());
        let start = own_start();
        let starts = bytes.windows(start.len()).filter(|window| *window == start);
        assert_eq!(starts.count(), 1);
        let (_, payload) = read_frame(&bytes, 0, &Limits::default()).unwrap();
        let (coding, stored) = match payload {
            Payload::Block { header, data } => (header.coding, data),
            Payload::Extents { header, data } => (header.coding, data),
            Payload::Entries { header, data } => (header.coding, data),
            other => panic!("unexpected {other:?}"),
        };
        assert_eq!(coding.mask(), mask);
        assert_eq!(*coding.unmasked(stored), *data);
    }

    #[test]
    fn sections_are_masked_where_they_must_be() {
        let own = [b"ab", &own_start()[..], b"cd"].concat();
        let other = [b"ab", &SYNC[..], b"other id"].concat();
        for (data, mask) in [(own, 1), (other, 0)] {
            let header = ExtentsHeader {
                epoch_id: 0,
                content_start: 0,
                content_bytes: 9,
                store_start: 0,
                fresh_bytes: 9,
                extent_count: 1,
                packed_raw_bytes: data.len() as u64,
                packed_checksum: 0,
                coding: Coding::none(),
            };
            let mut builder = ExtentsHeader::builder(Vec::new());
            builder.payload().extend(&data);
            let bytes = header.finish(builder).unwrap();
            check(
                Frame::Extents(header, EpochSums::default(), bytes),
                mask,
                &data,
            );

            let entries = refrain_format::property::entries_from_seed(1, 2);
            let packed = pack_entries(&entries).unwrap();
            let mut header = EntriesHeader::new(0, 0, &packed, Coding::none());
            header.packed_raw_bytes = data.len() as u64;
            let bytes = header.frame_of(&data).unwrap();
            check(Frame::Entries(header, bytes), mask, &data);
        }
    }
}
