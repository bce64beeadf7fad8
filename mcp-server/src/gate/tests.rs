//! The gate with tools made for the purpose.
