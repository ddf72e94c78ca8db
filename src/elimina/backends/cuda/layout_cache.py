"""Layouts of earlier programs, kept in the process for later programs with the same steps."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cuda.layout import DeviceLayout
from elimina.backends.cuda.translation import lay_out, steps_on_their_own
from elimina.planning.program import Program
from elimina.system import lock_for_a_moment

MAX_KEPT_LAYOUTS = 16
"""Largest number of kept layouts."""
MAX_KEPT_WORDS_BYTES = 1 << 20
"""Largest size of the records of a program whose layout is kept."""

_layouts: OrderedDict[bytes, DeviceLayout] = OrderedDict()
_digests: OrderedDict[int, tuple[NDArray[np.int64], bytes]] = OrderedDict()
"""``id`` of an array of records -> the array and its digest, for the latest programs: computing a digest takes time."""
_layouts_lock = lock_for_a_moment()


def kept_layout(program: Program, multiprocessors: int, shared_bytes: int, library: bool) -> DeviceLayout:
    """Return the layout of a whole program, from an earlier call with the same steps if there was one."""
    if program.words.nbytes > MAX_KEPT_WORDS_BYTES:
        return lay_out(program, multiprocessors, shared_bytes, None, library)
    kind = program.semiring, program.dtype.name, program.keep, program.decode, program.first_decoded, program.variables
    digest = hashlib.blake2b(
        repr((kind, program.arena_cells, multiprocessors, shared_bytes, library, steps_on_their_own(program))).encode()
    )
    for array in (program.starts, program.outputs):
        digest.update(repr(array.shape).encode())
        digest.update(array.tobytes())
    digest.update(_digest(program.words))
    key = digest.digest()
    with _layouts_lock:
        if key in _layouts:
            _layouts.move_to_end(key)
            return _layouts[key]
    layout = lay_out(program, multiprocessors, shared_bytes, None, library)._replace(copies={})
    with _layouts_lock:
        _layouts[key] = layout
        while len(_layouts) > MAX_KEPT_LAYOUTS:
            _layouts.popitem(last=False)
    return layout


def _digest(words: NDArray[np.int64]) -> bytes:
    """Return a digest of a program's records, kept by their array's ``id``: a kept plan always has the same array."""
    with _layouts_lock:
        entry = _digests.get(id(words))
        if entry is None:
            entry = _digests[id(words)] = words, hashlib.blake2b(words.tobytes()).digest()
            while len(_digests) > MAX_KEPT_LAYOUTS:
                _digests.popitem(last=False)
        return entry[1]
