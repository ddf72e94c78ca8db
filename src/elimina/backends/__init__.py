"""Devices that run programs."""

from elimina.backends.base import Backend, Run, Session, run_once
from elimina.backends.choose import DEVICES, get_backend

__all__ = ["DEVICES", "Backend", "Run", "Session", "get_backend", "run_once"]
