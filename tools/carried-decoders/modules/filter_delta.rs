//! Filter 3.

refrain_carried_decoders::filter!(3);
