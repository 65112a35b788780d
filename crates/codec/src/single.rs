//! Decoders of single codecs and filters, to be compiled to modules that archives carry
//! (`tools/carried-decoders`). Each function names its codec's type, so that a module has this
//! codec alone: neither the table of codecs nor an encoder.

use crate::codec::Codec;
use crate::codecs::bwt::{BWT, BWT2};
use crate::codecs::bzip2::Bzip2;
use crate::codecs::cm::Cm;
use crate::codecs::deflate::Deflate;
use crate::codecs::lz::Lz;
use crate::codecs::lz4::Lz4;
use crate::codecs::ppmd::Ppmd;
use crate::error::Result;
use crate::filter::step::FilterStep;
use crate::host::Host;
use crate::params::{Params, wrong_length};
use crate::workspace::Workspace;

fn decode(codec: &impl Codec, params: &[u8], data: &[u8], out: &mut [u8]) -> Result<()> {
    let params = Params::new(params).ok_or_else(|| wrong_length(params.len()))?;
    codec.check_params(&params, out.len() as u64)?;
    codec.decode(&mut Workspace::new(), &params, data, out)
}

macro_rules! decoders {
    ($($name:ident: $codec:expr, $number:literal;)*) => {
        $(
            #[doc = concat!("Decodes a block of codec ", stringify!($number), " into `out`, whose ")]
            /// length is the raw length.
            ///
            /// # Errors
            /// As [`Codec::check_params`] and [`Codec::decode`].
            pub fn $name(params: &[u8], data: &[u8], out: &mut [u8]) -> Result<()> {
                decode(&$codec, params, data, out)
            }
        )*

        /// The number of each codec here, with its decoder.
        #[cfg(test)]
        const DECODERS: &[(u16, Decoder)] = &[$(($number, $name),)*];
    };
}

#[cfg(test)]
type Decoder = fn(&[u8], &[u8], &mut [u8]) -> Result<()>;

decoders! {
    lz4: Lz4, 1;
    bzip2: Bzip2, 4;
    deflate: Deflate, 5;
    ppmd: Ppmd, 6;
    bwt: BWT, 7;
    cm: Cm, 8;
    lz: Lz, 9;
    bwt2: BWT2, 10;
}

/// Undoes the filter with this number and parameter in a whole block.
///
/// # Errors
/// As [`FilterStep::new`] and [`FilterStep::decode`].
pub fn undo_filter(id: u8, param: u8, bytes: &mut [u8]) -> Result<()> {
    FilterStep::new(id, param)?.decode(Host::default(), bytes)
}

#[cfg(not(target_family = "wasm"))]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::id::CodecId;
    use crate::registry::by_id;
    use crate::settings::Settings;
    use crate::test_data;

    #[test]
    fn each_decodes_what_the_codec_with_its_number_encodes() {
        let raw = test_data::text(1 << 15, 3);
        for &(number, decode) in DECODERS {
            let codec = by_id(CodecId(number)).unwrap();
            let mut data = Vec::new();
            let settings = Settings::default();
            let params = codec.encode(&mut Workspace::new(), &raw, &settings, &mut data);
            let params = params.unwrap();
            let mut out = vec![0; raw.len()];
            decode(params.as_bytes(), &data, &mut out).unwrap();
            assert_eq!(out, raw, "codec {number}");
            assert!(decode(&[0; 17], &data, &mut out).is_err());
        }
        let unknown = undo_filter(0, 0, &mut [1]);
        assert_eq!(unknown, Err(Error::UnsupportedFilter(0)));
    }
}
