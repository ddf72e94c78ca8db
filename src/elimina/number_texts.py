"""Numbers as texts: sizes, counts and times with units that people use, probabilities and bounds."""

from __future__ import annotations

import math

_DECIMAL_DIGITS = 15
"""Digits of a decimal that every float keeps."""

_MIN_NOISE_DIGITS = 4
"""Digits that rounding to 15 has to remove for a float to be a short decimal with rounding noise."""

MAX_DIGITS = 17
"""Largest number of significant digits: 17 digits distinguish all doubles."""


def times_text(numerator: int, denominator: int) -> str:
    """Format a ratio: ``1.7 times``."""
    hundredths = 100 * numerator // max(1, denominator)
    return f"{hundredths / 100:.2f} times" if hundredths < 10**6 else f"{count_text(hundredths // 100)} times"


def bytes_text(size: int) -> str:
    """Format bytes: ``1.5 GiB``."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        # A size that would round to 1024.0 of the smaller unit is 1.0 of this unit.
        if size * 20480 >= 20479 << power:
            whole = size >> power
            return f"{count_text(whole)} {unit}" if whole > 10**6 else f"{size / (1 << power):.1f} {unit}"
    return f"{size} byte{'s' * (size != 1)}"


def count_text(number: int) -> str:
    """Format a count: exact below a million, otherwise three digits and a power of ten, however large."""
    if number < 10**6:
        return f"{number:,}"
    exponent = math.log10(number)
    digits = round(100 * 10 ** (exponent % 1))
    return f"{digits / 100:.2f}e{int(exponent)}" if digits < 1000 else f"1.00e{int(exponent) + 1}"


def counted(number: int, noun: str, *, is_rounded: bool = False) -> str:
    """Format a number of things: ``1 table``, ``2 tables``; rounded: ``1.20e7 cells``, as ``count_text``."""
    return f"{count_text(number) if is_rounded else f'{number:,}'} {noun}{'s' * (number != 1)}"


def seconds_text(seconds: float) -> str:
    """Format a time: ``87 us``, ``3.2 ms``, ``4.0 h``, ``2e+09 years``."""
    if seconds == math.inf:
        return "more than 1e+300 years"
    units = (("years", 3.156e7), ("days", 86400), ("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3), ("us", 1e-6))
    unit, size = next((unit for unit in units if seconds >= unit[1]), units[-1])
    number = seconds / size
    return (
        f"{number:.1f} {unit}" if number < 9.95 else f"{number:.0f} {unit}" if number < 1e4 else f"{number:.0e} {unit}"
    )


_DIGITS = 4000


def probability_text(probability: float) -> str:
    """Format a probability with six decimals; if these would wrongly show 0 or 1, as ``3.00e-09`` or ``1-3.0e-09``."""
    if probability in (0, 1) or not math.isfinite(probability):
        return f"{probability:g}"
    if probability < 5e-7:
        return f"{probability:.2e}"
    return f"{probability:.6f}" if 1 - probability >= 5e-7 else f"1-{1 - probability:.1e}"


def number_text(number: float) -> str:
    """Return a number as ``str`` writes it, but without the rounding noise of a sum of decimals (-0.30000000000000004).

    Integers may have more than the 4300 digits that ``str`` refuses.
    """
    if isinstance(number, float):
        short = str(float(f"{number:.{_DECIMAL_DIGITS}g}"))
        return short if len(short) + _MIN_NOISE_DIGITS <= len(str(number)) else str(number)
    if abs(number) < 10**_DIGITS:
        return str(number)
    half = int(math.log10(abs(number))) // 2
    high, low = divmod(abs(number), 10**half)
    return ("-" if number < 0 else "") + number_text(high) + number_text(low).rjust(half, "0")


def log_text(log: float) -> str:
    """Return a logarithm of a sum to 12 digits; rounding noise around 0 becomes 0."""
    return f"{round(log, 12) + 0.0:.12g}"


def ends_text(lower: float | None, upper: float | None) -> str:
    """Return bounds as text: ``3 to unknown``, and ``0 to 1.25e196`` for integers with many zeros at the end."""
    return " to ".join("unknown" if end is None else _end_text(end) for end in (lower, upper))


def _end_text(end: float) -> str:
    text = number_text(end)
    digits = text.rstrip("0")
    if isinstance(end, float) or abs(end) < 2**64 or len(digits) > MAX_DIGITS:
        return text
    sign, digits = ("-", digits[1:]) if end < 0 else ("", digits)
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{sign}{mantissa}e{len(text) - len(sign) - 1}"
