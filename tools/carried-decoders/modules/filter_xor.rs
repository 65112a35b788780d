//! Filter 6.

refrain_carried_decoders::filter!(6);
