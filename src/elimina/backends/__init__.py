"""Devices that run programs."""

from elimina.backends.base import Backend, Run
from elimina.backends.choose import DEVICES, get_backend

__all__ = ["DEVICES", "Backend", "Run", "get_backend"]
