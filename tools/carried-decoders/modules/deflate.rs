//! Codec `deflate`.

refrain_carried_decoders::module!(|params, data, raw| {
    refrain_codec::single::deflate(params, data, raw).is_ok()
});
