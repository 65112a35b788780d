//! Codec `lz`.

refrain_carried_decoders::module!(|params, data, raw| {
    refrain_codec::single::lz(params, data, raw).is_ok()
});
