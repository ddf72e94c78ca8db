"""CPU backends in the place of GPUs: their sessions run at once what GPUs queue."""

from __future__ import annotations

import time

from elimina.backends.cpu import CpuBackend
from elimina.backends.cpu_session import CpuSession


class CpuDeviceSession(CpuSession):
    """A program in the host's memory, with the calls of ``PeerSession``."""

    def __init__(self, program, factors, threads):
        super().__init__(program, factors, threads)
        self._queued, self._copying = None, 0.0

    def copy_from(self, boxes):
        started = time.perf_counter()
        for other, source, target in boxes:
            self._view(target)[...] = other._view(source)
        self._copying += time.perf_counter() - started

    def queue(self, steps, share):
        self._queued = self.run(steps)

    def join_peaks(self, others, step):
        for other in others:
            low = min((own for own in (self._peaks[step, 1], other._peaks[step, 1]) if own > 0), default=0.0)
            self._peaks[step] = max(self._peaks[step, 0], other._peaks[step, 0]), low

    def follow(self, others):
        """Nothing: what is queued has run."""

    def finish(self, progress):
        return self._queued._replace(peaks=self._peaks.copy(), seconds={"exchange": self._copying})

    def cancel(self):
        """Nothing: what is queued has run."""


class CpuDevice(CpuBackend):
    """The host's processor, which may be one of several devices that a plan is divided among."""

    def open(self, program, factors):
        if program.sparse is not None or program.stream is not None:
            return super().open(program, factors)
        return CpuDeviceSession(program, factors, self.threads)
