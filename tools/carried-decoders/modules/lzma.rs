//! Codec `lzma`, by lzma-rs: raw LZMA2. The dictionary's size, which is the parameter, is not
//! needed, because all of the block is in memory.

refrain_carried_decoders::module!(|params, mut data, mut raw| {
    let decoded = lzma_rs::lzma2_decompress(&mut data, &mut raw);
    params.len() == 1 && decoded.is_ok() && data.is_empty() && raw.is_empty()
});
