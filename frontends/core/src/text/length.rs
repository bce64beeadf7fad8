//! How long a message may be, in the unit that its platform counts.

/// What a platform counts when it says that a message is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of UTF-8.
    Bytes,
    /// Units of UTF-16: most emoji are two.
    Utf16,
    /// Unicode's code points.
    Characters,
}

/// The longest message a platform takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    unit: Unit,
    most: usize,
}

impl Length {
    /// Any length will do.
    pub const UNLIMITED: Self = Self { unit: Unit::Bytes, most: usize::MAX };

    /// The smallest limit: the longest character has four bytes.
    pub const SMALLEST: usize = 4;

    /// At most so many bytes.
    ///
    /// # Panics
    /// If `most` is under [`Length::SMALLEST`]; the same holds for the others.
    #[must_use]
    pub const fn bytes(most: usize) -> Self {
        Self::new(Unit::Bytes, most)
    }

    /// At most so many UTF-16 units.
    #[must_use]
    pub const fn utf16(most: usize) -> Self {
        Self::new(Unit::Utf16, most)
    }

    /// At most so many characters.
    #[must_use]
    pub const fn characters(most: usize) -> Self {
        Self::new(Unit::Characters, most)
    }

    const fn new(unit: Unit, most: usize) -> Self {
        assert!(most >= Self::SMALLEST, "a limit of under 4 can't hold every character");
        Self { unit, most }
    }

    /// What is counted.
    #[must_use]
    pub const fn unit(self) -> Unit {
        self.unit
    }

    /// How much of it a message may have.
    #[must_use]
    pub const fn most(self) -> usize {
        self.most
    }

    /// How long `text` is in this unit.
    #[must_use]
    pub fn of(self, text: &str) -> usize {
        match self.unit {
            Unit::Bytes => text.len(),
            Unit::Utf16 => text.encode_utf16().count(),
            Unit::Characters => text.chars().count(),
        }
    }

    /// Whether `text` is one message.
    #[must_use]
    pub fn fits(self, text: &str) -> bool {
        // No unit is smaller than a byte, so most texts needn't be counted.
        text.len() <= self.most || self.of(text) <= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_counts_in_its_own_way() {
        #[rustfmt::skip]
        let cases = [
            // text     bytes  utf16  characters
            ("",        0,     0,     0),
            ("abc",     3,     3,     3),
            ("é",       2,     1,     1),
            ("😀",      4,     2,     1),
            ("👩‍🚀",      11,    5,     3),
        ];
        for (text, bytes, utf16, characters) in cases {
            assert_eq!(Length::bytes(9).of(text), bytes, "{text}");
            assert_eq!(Length::utf16(9).of(text), utf16, "{text}");
            assert_eq!(Length::characters(9).of(text), characters, "{text}");
        }
        assert!(Length::utf16(4).fits("😀😀") && !Length::utf16(4).fits("😀😀😀"));
    }
}
