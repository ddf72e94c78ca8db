"""Choosing the format, compression, and what goes wrong with files themselves."""

from __future__ import annotations

import gzip
import lzma
import os
import stat
import subprocess
import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from concurrent.futures import ThreadPoolExecutor

import pytest

import elimina
import elimina.io as eio
from elimina.errors import FormatError, InputError, MemoryLimitError
from elimina.io.formats import FORMATS
from elimina.io.parsing import parse_file

UAI = b"MARKOV 1 2 1 1 0 2 0.25 0.75\n"


def test_the_suffix_or_the_argument_names_the_format(tmp_path):
    (tmp_path / "a.UAI").write_bytes(UAI)
    (tmp_path / "b.txt").write_bytes(UAI)
    (tmp_path / "gz").write_bytes(UAI)
    assert eio.read(tmp_path / "a.UAI").sizes == (2,)
    assert eio.read(str(tmp_path / "b.txt"), format="uai").sizes == (2,)
    for path, options in ((tmp_path / "b.txt", {}), (tmp_path / "a.UAI", {"format": "tex"}), (tmp_path / "gz", {})):
        with pytest.raises(InputError, match="name one of uai, erg, wcsp, cfn, bif, xmlbif, "):
            eio.read(path, **options)
    with pytest.raises(InputError, match="name one of"):
        eio.write(eio.read(tmp_path / "a.UAI"), tmp_path / "c.txt")


@pytest.mark.parametrize(
    ("name", "text", "use"),
    [
        ("a.fzn", "", "constraint models are for elimina.cp.read"),
        ("a.opb", "", "constraint models are for elimina.cp.read"),
        ("a.mzn", "", "MiniZinc is for 'minizinc --solver elimina'"),
        ("a.tsp", "", "tours are for elimina.cp.read_tsp"),
        ("a.yaml", "", "distributed problems are for elimina.dcop.read"),
        ("a.xml", "<instance format='XCSP3'/>", "constraint models are for elimina.cp.read"),
        ("a.xml", "<instance/>", "distributed problems are for elimina.dcop.read"),
    ],
)
def test_files_of_other_problems_name_their_reader(tmp_path, name, text, use):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=use):
        eio.read(tmp_path / name)


def test_a_file_that_cannot_be_opened(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*No such file"):
        eio.read(tmp_path / "none.uai")
    (tmp_path / "d.uai").mkdir()
    with pytest.raises(InputError, match=r"cannot read .*directory"):
        eio.read(tmp_path / "d.uai")
    model = elimina.Model.from_arrays([2], [([0], [0.5, 0.5])], sense="probability")
    with pytest.raises(InputError, match="cannot write"):
        eio.write(model, tmp_path / "no" / "such.uai")
    with pytest.raises(InputError, match="cannot write"):
        eio.write(model, tmp_path / "d.uai")
    assert [p.name for p in tmp_path.iterdir()] == ["d.uai"]


BIF = b"network pump {} variable a { type discrete [2] {on, off}; } probability (a) { table 0.25, 0.75; }"
MARKED = {
    "m.uai": UAI,
    "m.bif": BIF,
    "m.uai.gz": gzip.compress(BOM_UTF8 + UAI),
    "m.wcsp": b"name 1 2 0 5\n2\n",
    "m.cfn": b'{"problem": {"name": "name", "mustbe": "<5"}, "variables": {"a": 2}, "functions": {}}',
    "m.cnf": b"p cnf 1 1\n1 0\n",
}


@pytest.mark.parametrize("name", MARKED)
def test_a_byte_order_mark_is_left_out(tmp_path, name):
    (tmp_path / "plain").mkdir()
    data = MARKED[name]
    (tmp_path / "plain" / name).write_bytes(gzip.compress(UAI) if name.endswith(".gz") else data)
    (tmp_path / name).write_bytes(data if name.endswith(".gz") else BOM_UTF8 + data)
    marked, plain = eio.read(tmp_path / name), eio.read(tmp_path / "plain" / name)
    assert marked.name == plain.name
    described = [[(v.name, v.size, v.states) for v in model.variables] for model in (marked, plain)]
    assert described[0] == described[1]
    assert len(marked.factors) == len(plain.factors)


@pytest.mark.parametrize("mark", [BOM_UTF16_LE, BOM_UTF16_BE])
@pytest.mark.parametrize("name", ["m.uai", "m.bif", "m.wcsp", "m.cfn", "m.cnf"])
def test_utf16_with_a_byte_order_mark(tmp_path, name, mark):
    """Windows' shells write redirected output so."""
    encoding = "utf-16-le" if mark == BOM_UTF16_LE else "utf-16-be"
    text = MARKED[name].decode().replace('"name": "name"', '"name": "größe"').replace("off", "größer")
    (tmp_path / name).write_bytes(mark + text.encode(encoding))
    (tmp_path / f"plain-{name}").write_text(text)
    marked, plain = eio.read(tmp_path / name), eio.read(tmp_path / f"plain-{name}")
    assert marked.name == plain.name
    assert [(v.name, v.states) for v in marked.variables] == [(v.name, v.states) for v in plain.variables]
    (tmp_path / name).write_bytes(mark + text.encode(encoding)[:-1])
    with pytest.raises(FormatError, match=f"{name}: expected UTF-16 text, as its byte order mark says: truncated data"):
        eio.read(tmp_path / name)


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_files(tmp_path, ending, pack):
    path = tmp_path / f"m.uai{ending}"
    whole = pack(UAI)
    path.write_bytes(whole)
    assert eio.read(path).sizes == (2,)
    path.write_bytes(pack(UAI[:10]) + pack(UAI[10:]))
    assert eio.read(path).sizes == (2,)
    damaged = [whole[:n] for n in range(len(whole))] + [UAI, whole + b"more", bytes([whole[0] ^ 1]) + whole[1:]]
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"m\.uai\.[gx]z: (expected|the (gzip|xz) data are) "):
            eio.read(path)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_compressed_files_under_a_plain_name(tmp_path, pack):
    (tmp_path / "m.uai").write_bytes(pack(UAI))
    assert eio.read(tmp_path / "m.uai").sizes == (2,)
    (tmp_path / "m.uai").write_bytes(pack(UAI)[:-3])
    with pytest.raises(FormatError, match=r"m\.uai: the (gzip|xz) data are"):
        eio.read(tmp_path / "m.uai")


def test_a_name_that_begins_as_bzip2_data(tmp_path):
    (tmp_path / "m.wcsp").write_bytes(b"BZh9 1 2 0 9\n2\n")
    assert eio.read(tmp_path / "m.wcsp").sizes == (2,)


def test_a_link_to_nothing_is_not_close_to_itself(tmp_path):
    (tmp_path / "model.uai").symlink_to(tmp_path / "gone.uai")
    with pytest.raises(InputError, match=r"cannot read .*: No such file or directory$"):
        eio.read(tmp_path / "model.uai")


def test_padded_files(tmp_path):
    """Tapes and concatenations pad: gzip by any zeros, xz by multiples of four, also between its streams."""
    path = tmp_path / "m.uai.gz"
    path.write_bytes(gzip.compress(UAI) + bytes(5))
    assert eio.read(path).sizes == (2,)
    path = tmp_path / "m.uai.xz"
    path.write_bytes(lzma.compress(UAI[:10]) + bytes(8) + lzma.compress(UAI[10:]) + bytes(4))
    assert eio.read(path).sizes == (2,)
    path.write_bytes(lzma.compress(UAI) + bytes(5))
    with pytest.raises(FormatError, match="the xz data are"):
        eio.read(path)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.wcsp"
    eio.write(elimina.Model.from_arrays([2], [([0], [0, 1])]), path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="at least 0"):
        eio.write(elimina.Model.from_arrays([2], [([0], [0, -1])]), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.wcsp"]


def test_a_replaced_file_keeps_its_mode(tmp_path):
    model = elimina.Model.from_arrays([2], [([0], [0, 1])])
    path = tmp_path / "m.wcsp"
    for mode in (0o600, 0o640, 0o755):
        path.touch()
        path.chmod(mode)
        eio.write(model, path)
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert eio.read(path).sizes == (2,)


def test_a_symbolic_link_stays_one(tmp_path):
    model = elimina.Model.from_arrays([2], [([0], [0, 1])])
    (tmp_path / "folder").mkdir()
    link, target = tmp_path / "m.wcsp", tmp_path / "folder" / "n.wcsp"
    link.symlink_to(target)
    for _ in ("the target is absent", "it is there"):
        eio.write(model, link)
        assert link.is_symlink()
        assert eio.read(target).sizes == (2,)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["folder", "m.wcsp", "n.wcsp"]


def test_a_pipe_is_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(path.read_bytes)
        eio.write(elimina.Model.from_arrays([2], [([0], [0, 1])]), path, format="wcsp")
        assert b" 2 " in read.result(timeout=10)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_text_that_is_not_utf8(tmp_path):
    path = tmp_path / "m.wcsp"
    path.write_bytes(b"\xff\xfd 1 2 0 10\n2\n")
    with pytest.raises(FormatError, match="UTF-8"):
        eio.read(path)


def test_formats_are_imported_when_needed():
    code = "import sys, elimina.io; elimina.io.read; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "elimina.io.formats" in loaded
    assert not {f"elimina.io.{form.name}" for form in FORMATS} & set(loaded)
    assert not {"elimina.io.network", "elimina.io.xml_documents", "xml.parsers.expat", "fractions"} & set(loaded)


def test_models_in_memory_need_no_formats():
    code = "import sys, elimina; elimina.solve(elimina.Model.from_arrays([2], [((0,), [1, 0])])); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"elimina.io.formats", "elimina.io.files", "elimina.io.evidence_files"} & set(loaded)


def test_memory_that_ends_while_a_file_is_read(tmp_path):
    (tmp_path / "m.uai").write_bytes(UAI)

    def parse(text):
        raise MemoryError

    with pytest.raises(MemoryLimitError, match=r"m\.uai: the process ran out of memory while it read the file"):
        parse_file(tmp_path / "m.uai", bytes, parse)


@pytest.mark.parametrize(
    "suffix", ["uai", "erg", "wcsp", "cfn", "bif", "xml", "net", "xdsl", "cnf", "wcnf", "lg", "qpbo"]
)
def test_binary_data(tmp_path, caplog, suffix):
    """A program or a picture under the name of a model is refused as such, without a warning about its encoding."""
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff")
    with pytest.raises(FormatError, match=rf"x.{suffix}: expected text, found binary data \(a byte 0\)$"):
        elimina.read(path)
    assert not caplog.records
