//! Exact fractions over big integers, each operation checked against the size bound.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

use super::{BITS_MAX, EXPONENT_MAX, Problem};

/// Decimal places that a root is computed to: far beyond what is shown.
const ROOT_PLACES: u32 = 40;
/// Significant digits of an approximate result.
const SHOWN_DIGITS: usize = 12;
/// The most decimal places an exact result is written out to; a longer one is shown as an approximation.
const EXACT_PLACES_MAX: u32 = 1000;
/// An exact fraction is shown beside its approximation where neither part has more digits than this.
const FRACTION_DIGITS_MAX: usize = 9;

/// A fraction in lowest terms, denominator positive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rational {
    numerator: BigInt,
    denominator: BigInt,
    exact: bool,
}

impl Rational {
    /// A whole number.
    pub(crate) fn integer(value: impl Into<BigInt>) -> Self {
        Self {
            numerator: value.into(),
            denominator: BigInt::from(1),
            exact: true,
        }
    }

    /// A fraction, reduced and checked.
    pub(crate) fn new(numerator: BigInt, denominator: BigInt, exact: bool) -> Result<Self, Problem> {
        if denominator.sign() == Sign::NoSign {
            return Err(Problem::Undefined("division by zero has no result".to_owned()));
        }
        let divisor = gcd(&numerator, &denominator);
        let (mut numerator, mut denominator) = (numerator / &divisor, denominator / &divisor);
        if denominator.sign() == Sign::Minus {
            numerator = -numerator;
            denominator = -denominator;
        }
        if numerator.bits() > BITS_MAX || denominator.bits() > BITS_MAX {
            return Err(too_large());
        }
        Ok(Self {
            numerator,
            denominator,
            exact,
        })
    }

    /// π to as many places as roots have.
    pub(crate) fn pi() -> Result<Self, Problem> {
        let digits = "31415926535897932384626433832795028841971";
        let numerator = digits
            .parse::<BigInt>()
            .map_err(|error| Problem::Syntax(error.to_string()))?;
        Self::new(numerator, power_of_ten(ROOT_PLACES), false)
    }

    pub(crate) fn add(&self, other: &Self) -> Result<Self, Problem> {
        let numerator = &self.numerator * &other.denominator + &other.numerator * &self.denominator;
        Self::new(
            numerator,
            &self.denominator * &other.denominator,
            self.exact && other.exact,
        )
    }

    pub(crate) fn negate(&self) -> Self {
        Self {
            numerator: -&self.numerator,
            denominator: self.denominator.clone(),
            exact: self.exact,
        }
    }

    pub(crate) fn multiply(&self, other: &Self) -> Result<Self, Problem> {
        Self::new(
            &self.numerator * &other.numerator,
            &self.denominator * &other.denominator,
            self.exact && other.exact,
        )
    }

    pub(crate) fn divide(&self, other: &Self) -> Result<Self, Problem> {
        Self::new(
            &self.numerator * &other.denominator,
            &self.denominator * &other.numerator,
            self.exact && other.exact,
        )
    }

    /// The largest whole number not above this one.
    pub(crate) fn floor(&self) -> Self {
        let mut quotient = &self.numerator / &self.denominator;
        let truncated_up =
            self.numerator.sign() == Sign::Minus && &quotient * &self.denominator != self.numerator;
        if truncated_up {
            quotient -= 1;
        }
        Self {
            numerator: quotient,
            denominator: BigInt::from(1),
            exact: self.exact,
        }
    }

    /// The smallest whole number not below this one.
    pub(crate) fn ceil(&self) -> Self {
        self.negate().floor().negate()
    }

    /// The remainder that has the sign of `other`.
    pub(crate) fn modulo(&self, other: &Self) -> Result<Self, Problem> {
        let whole = self.divide(other)?.floor();
        self.add(&whole.multiply(other)?.negate())
    }

    /// To `places` decimal places, a half away from zero.
    pub(crate) fn round(&self, places: &Self) -> Result<Self, Problem> {
        let Some(places) = places.small_integer() else {
            return Err(Problem::Undefined(format!(
                "`round` takes a whole number of decimal places from -{EXPONENT_MAX} to {EXPONENT_MAX}"
            )));
        };
        let scale = Self::integer(10).power_of(places)?;
        let scaled = self.multiply(&scale)?;
        let half = Self::new(BigInt::from(1), BigInt::from(2), true)?;
        let whole = if scaled.is_negative() {
            scaled.negate().add(&half)?.floor().negate()
        } else {
            scaled.add(&half)?.floor()
        };
        whole.divide(&scale)
    }

    /// To a whole power.
    pub(crate) fn power(&self, exponent: &Self) -> Result<Self, Problem> {
        match exponent.small_integer() {
            Some(exponent) => self.power_of(exponent),
            None if exponent.is_integer() => Err(Problem::TooLarge(format!(
                "exponents go up to {EXPONENT_MAX}; this one is beyond"
            ))),
            None => Err(Problem::Undefined(
                "exponents must be whole numbers; use sqrt(x) for a square root".to_owned(),
            )),
        }
    }

    fn power_of(&self, exponent: i32) -> Result<Self, Problem> {
        let times = exponent.unsigned_abs();
        // The size is known before the work is done: a product of k-bit numbers has at least k - 1 bits a factor.
        let bits = self.numerator.bits().max(self.denominator.bits());
        if bits.saturating_sub(1).saturating_mul(u64::from(times)) > BITS_MAX {
            return Err(too_large());
        }
        let (numerator, denominator) = (self.numerator.pow(times), self.denominator.pow(times));
        if exponent < 0 {
            Self::new(denominator, numerator, self.exact)
        } else {
            Self::new(numerator, denominator, self.exact)
        }
    }

    /// The square root: exact where there is an exact one.
    pub(crate) fn sqrt(&self) -> Result<Self, Problem> {
        if self.is_negative() {
            return Err(Problem::Undefined(
                "a negative number has no real square root".to_owned(),
            ));
        }
        let (upper, lower) = (self.numerator.sqrt(), self.denominator.sqrt());
        if &upper * &upper == self.numerator && &lower * &lower == self.denominator {
            return Self::new(upper, lower, self.exact);
        }
        let scale = power_of_ten(ROOT_PLACES);
        let root = (&self.numerator * &scale * &scale / &self.denominator).sqrt();
        Self::new(root, scale, false)
    }

    pub(crate) fn absolute(&self) -> Self {
        if self.is_negative() {
            self.negate()
        } else {
            self.clone()
        }
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        (&self.numerator * &other.denominator).cmp(&(&other.numerator * &self.denominator))
    }

    fn is_negative(&self) -> bool {
        self.numerator.sign() == Sign::Minus
    }

    fn is_integer(&self) -> bool {
        self.denominator == BigInt::from(1)
    }

    /// The value, where it is whole and within the exponent bound.
    fn small_integer(&self) -> Option<i32> {
        if !self.is_integer() {
            return None;
        }
        i32::try_from(&self.numerator)
            .ok()
            .filter(|value| value.unsigned_abs() <= EXPONENT_MAX)
    }

    /// The value as text: exact where that is possible, else marked `≈`.
    pub(crate) fn to_text(&self) -> String {
        if self.exact {
            if let Some(text) = self.exact_decimal() {
                return text;
            }
            let fraction = format!("{}/{}", self.numerator, self.denominator);
            let longest = self
                .numerator
                .to_string()
                .len()
                .max(self.denominator.to_string().len());
            if longest <= FRACTION_DIGITS_MAX {
                return format!("≈ {} (exactly {fraction})", self.approximate());
            }
        }
        format!("≈ {}", self.approximate())
    }

    /// The finite decimal form, where there is one of bearable length.
    fn exact_decimal(&self) -> Option<String> {
        let places = decimal_places(&self.denominator)?;
        if places == 0 {
            return Some(self.numerator.to_string());
        }
        let scaled = self.absolute().numerator * power_of_ten(places) / &self.denominator;
        let width = usize::try_from(places).ok()?;
        let digits = format!(
            "{scaled:0>width$}",
            scaled = scaled.to_string(),
            width = width + 1
        );
        let (whole, fraction) = digits.split_at_checked(digits.len().checked_sub(width)?)?;
        let sign = if self.is_negative() { "-" } else { "" };
        Some(format!("{sign}{whole}.{fraction}"))
    }

    /// Twelve significant digits, plain or scientific.
    fn approximate(&self) -> String {
        if self.numerator.sign() == Sign::NoSign {
            return "0".to_owned();
        }
        let magnitude = self.absolute();
        let mut exponent = i64::try_from(magnitude.numerator.to_string().len()).unwrap_or(0)
            - i64::try_from(magnitude.denominator.to_string().len()).unwrap_or(0);
        let mut digits = scaled_digits(&magnitude, exponent);
        // The first guess of the exponent is right or one too high; rounding up can add a digit.
        if digits.len() < SHOWN_DIGITS {
            exponent -= 1;
            digits = scaled_digits(&magnitude, exponent);
        }
        if digits.len() > SHOWN_DIGITS {
            exponent += 1;
            digits.truncate(SHOWN_DIGITS);
        }
        let sign = if self.is_negative() { "-" } else { "" };
        format!("{sign}{}", place_point(&digits, exponent))
    }
}

/// The digits of `value / 10^exponent`, rounded to the digits shown and without a point.
fn scaled_digits(value: &Rational, exponent: i64) -> String {
    let shift = i64::try_from(SHOWN_DIGITS).unwrap_or(0) - 1 - exponent;
    let scale = power_of_ten(u32::try_from(shift.unsigned_abs()).unwrap_or(u32::MAX).min(4000));
    let (numerator, denominator) = if shift >= 0 {
        (&value.numerator * scale, value.denominator.clone())
    } else {
        (value.numerator.clone(), &value.denominator * scale)
    };
    let digits: BigInt = (&numerator * 2 + &denominator) / (denominator * 2);
    digits.to_string()
}

/// Sets the point into significant digits whose first stands for `10^exponent`.
fn place_point(digits: &str, exponent: i64) -> String {
    let significant = digits.trim_end_matches('0');
    let significant = if significant.is_empty() { "0" } else { significant };
    if (0..15).contains(&exponent) {
        let whole_digits = usize::try_from(exponent).unwrap_or(0) + 1;
        if significant.len() <= whole_digits {
            return format!("{significant:0<whole_digits$}");
        }
        let (whole, fraction) = significant.split_at(whole_digits);
        return format!("{whole}.{fraction}");
    }
    if (-6..0).contains(&exponent) {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        return format!("0.{zeros}{significant}");
    }
    let (first, rest) = significant.split_at(1);
    if rest.is_empty() {
        format!("{first}e{exponent}")
    } else {
        format!("{first}.{rest}e{exponent}")
    }
}

/// How many decimal places `1/denominator` needs, where that is finite and bearable.
fn decimal_places(denominator: &BigInt) -> Option<u32> {
    let twos = u32::try_from(denominator.trailing_zeros().unwrap_or(0)).ok()?;
    let mut rest = denominator >> twos;
    let mut fives = 0;
    while rest != BigInt::from(1) {
        if &rest % 5 != BigInt::from(0) {
            return None;
        }
        rest /= 5;
        fives += 1;
    }
    Some(twos.max(fives)).filter(|places| *places <= EXACT_PLACES_MAX)
}

/// `10^places`.
pub(crate) fn power_of_ten(places: u32) -> BigInt {
    BigInt::from(10).pow(places)
}

fn gcd(left: &BigInt, right: &BigInt) -> BigInt {
    let (mut left, mut right) = (left.clone(), right.clone());
    while right.sign() != Sign::NoSign {
        let rest = &left % &right;
        left = right;
        right = rest;
    }
    left
}

fn too_large() -> Problem {
    Problem::TooLarge(format!(
        "a number on the way is larger than {BITS_MAX} bits (about 1,200 digits)"
    ))
}
