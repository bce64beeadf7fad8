//! Tests of opening and migrating.
