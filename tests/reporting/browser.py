"""A headless browser for tests: it loads a page, does something on it, and says what became of it."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PROGRAM = next((found for name in _NAMES if (found := shutil.which(name))), None)
needs_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")
SECONDS = 150  # a loaded machine takes ten


def visit(page: Path, script: str, folder: Path) -> Any:
    """Run a script on a page; return its value. The page and the script must not cause any complaint.

    Args:
        page: The page, a file.
        script: Body of an async function in JavaScript, which returns what JSON can hold.
        folder: A folder for the browser's files.
    """
    with _Browser(folder) as browser:
        return browser.visit(page, script)


class _Browser:
    """A browser that is told by the DevTools protocol, through pipes, what to do."""

    def __init__(self, folder: Path) -> None:
        assert PROGRAM is not None
        self._end = time.monotonic() + SECONDS
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
        flags += [f"--user-data-dir={folder / 'profile'}", "--window-size=1100,900"]
        # The protocol's pipes are the descriptors 3 and 4.
        command = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, PROGRAM, *flags],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._known, self._number = b"", 0
        self.complaints: list[Any] = []
        self._is_loaded = False

    def __enter__(self) -> _Browser:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def visit(self, page: Path, script: str) -> Any:
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable", {}, session)
        self._call("Page.navigate", {"url": page.as_uri()}, session)
        while not self._is_loaded:
            self._read()
        asked = {"expression": f"(async () => {{ {script} }})()", "awaitPromise": True, "returnByValue": True}
        answer = self._call("Runtime.evaluate", asked, session)
        assert "exceptionDetails" not in answer, answer
        assert not self.complaints, self.complaints
        return answer["result"].get("value")

    def _call(self, method: str, given: dict[str, Any], session: str | None = None) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": given}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self) -> Any:
        while b"\0" not in self._known:
            ready, _, _ = select.select([self._in], [], [], max(self._end - time.monotonic(), 0))
            assert ready, "the browser takes too long"
            part = os.read(self._in, 1 << 20)
            assert part, "the browser has ended"
            self._known += part
        line, _, self._known = self._known.partition(b"\0")
        message = json.loads(line)
        if message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(message["params"])
        self._is_loaded |= message.get("method") == "Page.loadEventFired"
        return message
