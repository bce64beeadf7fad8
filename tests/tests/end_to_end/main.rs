//! The whole of OpenPact with the real engine: a message goes in at one end and
//! its answer comes out, whatever is killed on the way.
//!
//! A scripted model is the only thing that isn't real.

mod chaos;
mod failures;
mod main_job;
