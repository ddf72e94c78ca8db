"""Running a test on every device."""

from __future__ import annotations

import pytest

on_devices = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
