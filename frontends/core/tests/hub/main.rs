//! A frontend against a hub and a platform that do what a test says.

mod connection;
mod delivery;
mod fake;
