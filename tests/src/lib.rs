//! Nothing: the tests of OpenPact as a whole are in `tests/tests/`.
