"""The page on the architecture against the code: the picture of layers, and the way of a question."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import elimina
from tests.imports import layers

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")

TRACE = """
import json, sys, threading
from pathlib import Path
package = Path(sys.argv.pop(1))
ends = {str(package / "running" / "call_thread.py"), str(package / "backends" / "cpu_session.py")}
ways = set()
def note(frame, event, _):
    if event == "call" and frame.f_code.co_filename in ends:
        way = []
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(package):
                way.append(path.relative_to(package).as_posix())
            frame = frame.f_back
        if tuple(way) not in ways:
            ways.add(tuple(way))
            sys.stderr.write(json.dumps(way[::-1]) + "\\n")  # whole lines, because both threads write
from elimina.cli import main
threading.setprofile(note)
sys.setprofile(note)
main()
"""


def test_the_picture_shows_the_imports():
    (picture,) = re.findall(r"```mermaid\nflowchart TD\n(.*?)```", PAGE, re.DOTALL)
    assert [line.strip() for line in picture.splitlines()] == [f"{upper} --> {lower}" for upper, lower in layers()]


LAYERS = ("strategies", "methods", "running", "backends")


def test_the_way_of_a_question():
    """The stacks of calls that run the plan pass the files that the page names, and never go back up."""
    folder = str(Path(elimina.__file__).parent)
    command = [sys.executable, "-c", TRACE, folder, "solve", "examples/radio.wcsp", "--device", "cpu"]
    ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    ways = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith("[")]
    asking = [way for way in ways if way[0] == "cli/__init__.py" and "strategies/call.py" in way]
    running = [way[1:] for way in ways if "methods/optimum.py" in way]
    assert asking
    assert running
    section = PAGE[PAGE.index("## The way of a question") :]
    named = set(re.findall(r"`([\w/]+\.py)`", section))
    for way in running:
        assert named.issuperset(way)
        places = [LAYERS.index(path.split("/")[0]) for path in way]
        assert places == sorted(places)
    assert len(set().union(*asking, *running)) <= 20
