//! Codec `lz4`.

refrain_carried_decoders::module!(|params, data, raw| {
    refrain_codec::single::lz4(params, data, raw).is_ok()
});
