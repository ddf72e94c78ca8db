"""``--no-check`` and ``-v`` of commands that read networks."""

from __future__ import annotations

BAYES = "BAYES\n2\n2 2\n2\n1 0\n2 0 1\n2 0.8 0.2\n4 0.9 0.1 0.3 0.3\n"


def write_bif(path, yes):
    path.write_text(
        "network n {} variable rain { type discrete [ 2 ] { no, yes }; } "
        "variable wet { type discrete [ 2 ] { dry, wet }; }"
        f"probability ( rain ) {{ table 0.8, 0.2; }} probability ( wet | rain ) {{ (no) 0.9, 0.1; (yes) {yes}; }}"
    )
    return path


def test_rows_that_miss_1(elimina, tmp_path):
    path = write_bif(tmp_path / "n.bif", yes="0.3, 0.3")
    for arguments in (["solve", path, "--task", "pr"], ["plan", path], ["convert", path, tmp_path / "n.uai"]):
        result = elimina(*arguments)
        assert result.code == 1
        assert "the distribution of 'wet' given rain=yes sums to 0.6" in result.err
        assert "--no-check" in result.err
        assert elimina(*arguments, "--no-check").code == 0


def test_verbose(elimina, tmp_path):
    path = write_bif(tmp_path / "n.bif", yes="0.333, 0.666")
    quiet, verbose = elimina("solve", path, "--task", "pr"), elimina("solve", path, "--task", "pr", "-v")
    assert quiet.code == verbose.code == 0
    assert "normalised" not in quiet.err
    assert "elimina: normalised rows that miss 1 by at most 0.001: 1 in the distributions of 1" in verbose.err


def test_a_product_of_tables(elimina, tmp_path):
    path = tmp_path / "n.uai"
    path.write_text(BAYES)
    result = elimina("solve", path, "--task", "pr", "--json")
    assert result.code == 0
    assert "elimina: the distribution of 'x1' given x0=1 sums to 0.6, not 1; one row misses" in result.err
    assert "product of tables" not in elimina("solve", path, "--task", "pr", "--no-check").err
