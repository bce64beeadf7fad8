//! Tests of the writing thread.
