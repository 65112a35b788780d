//! Filter 5.

refrain_carried_decoders::filter!(5);
