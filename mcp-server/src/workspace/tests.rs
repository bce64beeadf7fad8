//! The walls, tried from inside.
