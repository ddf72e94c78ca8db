"""Layout of the keys of sparse tables: mixed-radix tuples in 64-bit words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import UnsupportedError
from elimina.number_texts import counted

WORD = 64
MAX_KEY_WORDS = 4
DTYPES = ("int32", "int64", "float32", "float64", "uint64")
"""Number types of the values of sparse tables."""


class KeyLayout(NamedTuple):
    """Layout of a key of 64-bit words: each variable's value index has a field, which lies within one word.

    Attributes:
        scope: Variables, the most significant one first; the last one is eliminated next.
        sizes: Domain sizes of these variables.
        fields: Word (0: the most significant one) and lowest bit of each field.
        words: Number of words of a key.
    """

    scope: tuple[int, ...]
    sizes: tuple[int, ...]
    fields: tuple[tuple[int, int], ...]
    words: int

    @staticmethod
    def of(scope: Sequence[int], sizes: Sequence[int]) -> KeyLayout:
        """Return the layout with fields packed as tightly as words allow.

        Raises:
            UnsupportedError: The key would have more than ``MAX_KEY_WORDS`` words.
        """
        word, shift = 0, 0
        backwards = []
        for size in reversed(sizes):
            bits = field_bits(size)
            if shift + bits > WORD:
                word, shift = word + 1, 0
            backwards.append((word, shift))
            shift += bits
        if word >= MAX_KEY_WORDS:
            bits = sum(map(field_bits, sizes))
            raise UnsupportedError(
                f"a sparse table over {counted(len(scope), 'variable')} needs {bits} bits a tuple, more than "
                f"{MAX_KEY_WORDS * WORD}: use dense tables or a smaller bucket size"
            )
        fields = tuple((word - w, s) for w, s in reversed(backwards))
        return KeyLayout(tuple(scope), tuple(sizes), fields, word + 1)

    def size(self, variable: int) -> int:
        """Return the domain size of a variable of the scope."""
        return self.sizes[self.scope.index(variable)]

    def low(self) -> int:
        """Return the mask of the last variable's field, which is the lowest field of the last word."""
        return (1 << field_bits(self.sizes[-1])) - 1

    def mask(self, variables: Iterable[int]) -> NDArray[np.uint64]:
        """Return the mask of some variables' fields: one number for each word."""
        words = [0] * self.words
        for variable in variables:
            at = self.scope.index(variable)
            word, shift = self.fields[at]
            words[word] |= ((1 << field_bits(self.sizes[at])) - 1) << shift
        return np.array(words, dtype=np.uint64)

    def without_last(self) -> KeyLayout:
        """Return the layout after the elimination of the last variable; the bits of its field are then zero."""
        return KeyLayout(self.scope[:-1], self.sizes[:-1], self.fields[:-1], self.words)

    def segments(self, target: KeyLayout) -> NDArray[np.int64]:
        """Return the moves of bits from a key of this layout to one of another layout.

        The result is an int64 array of shape (n, 5): see ``SegmentWord`` in ``elimina/rows.hpp``.
        """
        merged: list[list[int]] = []
        for at in sorted(range(len(self.scope)), key=lambda at: self.fields[at]):
            bits = field_bits(self.sizes[at])
            if not bits:
                continue
            (word, shift), (to_word, to_shift) = self.fields[at], target.fields[target.scope.index(self.scope[at])]
            last = merged[-1] if merged else None
            after = [last[0], last[1] + last[2], last[3], last[4] + last[2]] if last else []
            if last and after == [word, shift, to_word, to_shift] and last[2] + bits < WORD:
                last[2] += bits
            else:
                merged.append([word, shift, bits, to_word, to_shift])
        moves = np.array(merged, dtype=np.int64).reshape(-1, 5)
        moves[:, 2] = [signed((1 << bits) - 1) for bits in moves[:, 2].tolist()]
        return moves

    def terms(self, scope: Sequence[int], strides: Sequence[int]) -> NDArray[np.int64]:
        """Return the terms whose sum is the position of a key's cell in a dense table.

        The result is an int64 array of shape (n, 4): see ``TermWord`` in ``elimina/rows.hpp``.
        """
        merged: list[list[int]] = []
        axes = [self.scope.index(v) for v in scope]
        fields = [(*self.fields[at], self.sizes[at], stride) for at, stride in zip(axes, strides, strict=True)]
        for word, shift, size, stride in sorted(fields):
            bits = field_bits(size)
            last = merged[-1] if merged else None
            after = [last[0], last[1] + last[2], last[3] << last[2]] if last else []
            if last and after == [word, shift, stride] and last[2] + bits < WORD:
                last[2] += bits
            elif bits:
                merged.append([word, shift, bits, stride])
        result = np.array(merged, dtype=np.int64).reshape(-1, 4)
        result[:, 2] = [signed((1 << bits) - 1) for bits in result[:, 2].tolist()]
        return result


def field_bits(size: int) -> int:
    """Return the number of bits in a field for value indices below ``size``."""
    return max(0, size - 1).bit_length()


def signed(word: int) -> int:
    """Return the signed number with the bits of a 64-bit word."""
    return word - (1 << WORD) if word >> (WORD - 1) else word
