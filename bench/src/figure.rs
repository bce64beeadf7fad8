//! Figures, and the table of them.

use std::time::Duration;

/// A measured value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    Time(Duration),
    Bytes(u64),
}

impl Value {
    fn number(self) -> f64 {
        match self {
            Self::Time(time) => time.as_secs_f64(),
            // Exact up to eight petabytes.
            #[expect(clippy::cast_precision_loss, reason = "figures are shown with three digits")]
            Self::Bytes(bytes) => bytes as f64,
        }
    }

    fn shown(self) -> String {
        match self {
            Self::Time(time) if time < Duration::from_millis(1) => {
                format!("{:.0} µs", time.as_secs_f64() * 1e6)
            }
            Self::Time(time) => format!("{:.2} ms", time.as_secs_f64() * 1e3),
            Self::Bytes(_) => format!("{:.1} MiB", self.number() / 1_048_576.0),
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// What was measured.
    pub(crate) what: &'static str,
    /// OpenPact's.
    pub(crate) ours: Value,
    /// What it's measured against, and its name.
    pub(crate) other: Option<(&'static str, Value)>,
    /// The most it may be.
    pub(crate) goal: Option<Value>,
}

impl Figure {
    fn ratio(&self) -> String {
        let Some((_, other)) = self.other else { return String::new() };
        format!("{:.3}", self.ours.number() / other.number())
    }

    fn verdict(&self) -> &'static str {
        match self.goal {
            Some(goal) if self.ours.number() <= goal.number() => "met",
            Some(_) => "MISSED",
            None => "",
        }
    }
}

/// All figures, in columns.
pub(crate) fn table(figures: &[Figure]) -> String {
    let heading = ["measured", "OpenPact", "beside", "", "ratio", "goal", ""];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(figures.iter().map(|figure| {
        let (name, other) = match figure.other {
            Some((name, other)) => (name.to_owned(), other.shown()),
            None => Default::default(),
        };
        let goal = figure.goal.map(|goal| format!("<= {}", goal.shown())).unwrap_or_default();
        let (what, ours) = (figure.what.to_owned(), figure.ours.shown());
        [what, ours, name, other, figure.ratio(), goal, figure.verdict().to_owned()]
    }));
    let widths = std::array::from_fn::<_, 7, _>(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    });
    let mut table = String::new();
    for row in rows {
        let cells: Vec<_> = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                // Names to the left, numbers to the right.
                0 | 2 | 6 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        table.push_str(cells.join("  ").trim_end());
        table.push('\n');
    }
    table
}

/// The middle one of what was measured; the slowest of the fastest 95 % beside it.
pub(crate) fn median_and_p95(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    let at = |percent: usize| {
        let index = (times.len() * percent).div_ceil(100).saturating_sub(1);
        times.get(index).copied().unwrap_or_default()
    };
    (at(50), at(95))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_slow_end_are_found() {
        let times = |millis: &[u64]| millis.iter().copied().map(Duration::from_millis).collect();
        #[rustfmt::skip]
        let cases: [(&[u64], u64, u64); 4] = [
            (&[7],                7, 7),
            (&[3, 1, 2],          2, 3),
            (&[4, 3, 2, 1],       2, 4),
            (&[],                 0, 0),
        ];
        for (millis, median, slow) in cases {
            let expected = (Duration::from_millis(median), Duration::from_millis(slow));
            assert_eq!(median_and_p95(times(millis)), expected, "{millis:?}");
        }
    }

    #[test]
    fn a_table_says_what_was_met() {
        let figures = [
            Figure {
                what: "start",
                ours: Value::Time(Duration::from_micros(7_500)),
                other: Some(("peer", Value::Time(Duration::from_millis(300)))),
                goal: Some(Value::Time(Duration::from_millis(20))),
            },
            Figure {
                what: "memory",
                ours: Value::Bytes(20 * 1_048_576),
                other: None,
                goal: Some(Value::Bytes(15 * 1_048_576)),
            },
        ];
        let expected = "\
measured  OpenPact  beside             ratio         goal
start      7.50 ms  peer    300.00 ms  0.025  <= 20.00 ms  met
memory    20.0 MiB                            <= 15.0 MiB  MISSED
";
        assert_eq!(table(&figures), expected);
    }
}
