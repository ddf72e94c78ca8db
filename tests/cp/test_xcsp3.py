"""XCSP3 files: every constraint has the solutions of its definition, and what is malformed names its line."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import random
import re
from pathlib import Path

import pytest

import elimina
from elimina import cp
from elimina.cp.xcsp3 import tables
from elimina.errors import EliminaError, FormatError, InputError, UnsupportedError

SMALL = '<array id="x" size="[3]"> 0..3 </array><var id="b"> 0 1 </var>'


def problem(constraints="", variables=SMALL, objective="", kind="CSP"):
    return (
        f'<instance format="XCSP3" type="{kind}">\n<variables>\n{variables}\n</variables>\n'
        f"<constraints>\n{constraints}\n</constraints>\n{objective}</instance>\n"
    )


def read(tmp_path, text, name="p.xml"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return cp.read(path)


def solutions(tmp_path, constraints, variables=SMALL, names=("x[0]", "x[1]", "x[2]", "b")):
    model = read(tmp_path, problem(constraints, variables))
    found = [tuple(s[name] for name in names) for s in model.solve(all_solutions=True).solutions]
    return set(found)


def div(a, b):
    return abs(a) // abs(b) * (1 if a * b >= 0 else -1)


X = "<list> x[] </list>"
CASES = [
    ("<intension> eq(add(x[0],x[1],1),mul(2,x[2])) </intension>", lambda x, y, z, b: x + y + 1 == 2 * z),
    ("<intension> le(dist(x[0],x[1]),b) </intension>", lambda x, y, z, b: abs(x - y) <= b),
    ("<intension> or(lt(x[0],x[1],x[2]),and(b,not(eq(x[0],3)))) </intension>",
     lambda x, y, z, b: x < y < z or (b and x != 3)),
    ("<intension> imp(b,ge(x[0],x[1])) </intension>", lambda x, y, z, b: not b or x >= y),
    ("<intension> iff(b,gt(x[0],x[1]),ne(x[2],0)) </intension>", lambda x, y, z, b: b == (x > y) == (z != 0)),
    ("<intension> xor(b,eq(x[0],x[1]),eq(x[1],x[2])) </intension>", lambda x, y, z, b: b ^ (x == y) ^ (y == z)),
    ("<intension> eq(x[2],if(b,x[0],sub(3,x[1]))) </intension>", lambda x, y, z, b: z == (x if b else 3 - y)),
    ("<intension> eq(div(sub(x[0],3),add(x[1],2)),neg(b)) </intension>",
     lambda x, y, z, b: div(x - 3, y + 2) == -b),
    ("<intension> eq(mod(x[0],add(x[1],1)),b) </intension>", lambda x, y, z, b: x % (y + 1) == b),
    ("<intension> eq(pow(x[0],2),add(sqr(x[1]),b)) </intension>", lambda x, y, z, b: x**2 == y**2 + b),
    ("<intension> eq(min(x[0],x[1]),max(x[2],b)) </intension>", lambda x, y, z, b: min(x, y) == max(z, b)),
    ("<intension> in(x[0],set(1,3)) </intension>", lambda x, y, z, b: x in (1, 3)),
    ("<intension> eq(b,in(x[0],set(0,1,3))) </intension>", lambda x, y, z, b: b == (x in (0, 1, 3))),
    ("<intension> in(x[0],set(x[1],x[2])) </intension>", lambda x, y, z, b: x in (y, z)),
    ("<intension> <function> eq(abs(sub(x[0],x[1])),2) </function> </intension>", lambda x, y, z, b: abs(x - y) == 2),
    (f"<extension> {X} <supports> (0,1,2)(3,*,0)(1,1,1) </supports> </extension>",
     lambda x, y, z, b: (x, y, z) in ((0, 1, 2), (1, 1, 1)) or (x, z) == (3, 0)),
    (f"<extension> {X} <conflicts> (0,1,2)(3,*,0)(9,1,1) </conflicts> </extension>",
     lambda x, y, z, b: (x, y, z) != (0, 1, 2) and (x, z) != (3, 0)),
    ("<extension> <list> x[0] </list> <supports> 0 2..3 </supports> </extension>", lambda x, y, z, b: x in (0, 2, 3)),
    ("<extension> <list> x[1] </list> <conflicts> 2 </conflicts> </extension>", lambda x, y, z, b: y != 2),
    ("<allDifferent> x[] </allDifferent>", lambda x, y, z, b: len({x, y, z}) == 3),
    ("<allDifferent> x[0] add(x[1],1) 2 </allDifferent>", lambda x, y, z, b: len({x, y + 1, 2}) == 3),
    (f"<allDifferent> {X} <except> 2 </except> </allDifferent>",
     lambda x, y, z, b: all(p != q or p == 2 for p, q in ((x, y), (x, z), (y, z)))),
    (f"<allDifferent> {X} <except> 0 3 </except> </allDifferent>",
     lambda x, y, z, b: all(p != q or p in (0, 3) for p, q in ((x, y), (x, z), (y, z)))),
    ("<allDifferent> <list> x[0] x[1] </list> <list> x[2] b </list> </allDifferent>",
     lambda x, y, z, b: (x, y) != (z, b)),
    ("<allDifferent> <matrix> (x[0],x[1])(x[2],b) </matrix> </allDifferent>",
     lambda x, y, z, b: x != y and z != b and x != z and y != b),
    ("<allEqual> x[0..1] b </allEqual>", lambda x, y, z, b: x == y == b),
    (f"<ordered> {X} <operator> lt </operator> </ordered>", lambda x, y, z, b: x < y < z),
    (f"<ordered> {X} <lengths> 1 2 </lengths> <operator> le </operator> </ordered>",
     lambda x, y, z, b: x + 1 <= y and y + 2 <= z),
    ("<lex> <list> x[0] x[1] </list> <list> x[2] b </list> <operator> ge </operator> </lex>",
     lambda x, y, z, b: (x, y) >= (z, b)),
    (f"<sum> {X} <coeffs> 1 -2 b </coeffs> <condition> (gt,x[1]) </condition> </sum>",
     lambda x, y, z, b: x - 2 * y + b * z > y),
    (f"<sum> {X} <coeffs> 2x3 </coeffs> <condition> (in,4..7) </condition> </sum>",
     lambda x, y, z, b: 4 <= 2 * (x + y + z) <= 7),
    (f"<sum> {X} <condition> (notin,{{0,3,5}}) </condition> </sum>", lambda x, y, z, b: x + y + z not in (0, 3, 5)),
    (f"<count> {X} <values> 1 </values> <condition> (eq,add(b,1)) </condition> </count>",
     lambda x, y, z, b: (x, y, z).count(1) == b + 1),
    (f"<count> {X} <values> 1 3 </values> <condition> (ge,2) </condition> </count>",
     lambda x, y, z, b: sum(v in (1, 3) for v in (x, y, z)) >= 2),
    (f"<nValues> {X} <condition> (eq,2) </condition> </nValues>", lambda x, y, z, b: len({x, y, z}) == 2),
    (f"<cardinality> {X} <values> 0 2 </values> <occurs> 1..2 b </occurs> </cardinality>",
     lambda x, y, z, b: 1 <= (x, y, z).count(0) <= 2 and (x, y, z).count(2) == b),
    (f'<cardinality> {X} <values closed="true"> 0 2 </values> <occurs> 1 2 </occurs> </cardinality>',
     lambda x, y, z, b: sorted((x, y, z)) == [0, 2, 2]),
    (f"<cardinality> {X} <values> 0 2 0 </values> <occurs> 1..2 b 2..3 </occurs> </cardinality>",
     lambda x, y, z, b: (x, y, z).count(0) == 2 and (x, y, z).count(2) == b),
    (f"<minimum> {X} <condition> (eq,b) </condition> </minimum>", lambda x, y, z, b: min(x, y, z) == b),
    (f"<maximum> {X} <condition> (ne,3) </condition> </maximum>", lambda x, y, z, b: max(x, y, z) != 3),
    (f"<element> {X} <index> b </index> <value> 2 </value> </element>", lambda x, y, z, b: (x, y, z)[b] == 2),
    ('<element> <list startIndex="1"> 3 0 5 </list> <index> x[0] </index> <value> x[1] </value> </element>',
     lambda x, y, z, b: 1 <= x <= 3 and (3, 0, 5)[x - 1] == y),
    (f"<element> {X} <value> b </value> </element>", lambda x, y, z, b: b in (x, y, z)),
    ("<element> <matrix> (3,x[2])(b,1) </matrix> <index> x[0] x[1] </index> <condition> (ge,1) </condition> </element>",
     lambda x, y, z, b: x < 2 and y < 2 and ((3, z), (b, 1))[x][y] >= 1),
    ("<channel> x[] </channel>", lambda x, y, z, b: all(v < 3 and (x, y, z)[v] == i for i, v in enumerate((x, y, z)))),
    ("<channel> <list> x[0] x[1] </list> <list> x[2] b </list> </channel>",
     lambda x, y, z, b: x < 2 and y < 2 and z < 2 and all(((x, y)[i] == j) == ((z, b)[j] == i)
                                                          for i in (0, 1) for j in (0, 1))),
    ("<channel> <list> b </list> <list> x[] </list> </channel>", lambda x, y, z, b: (x, y, z)[b] == 0),
    ("<channel> <list> b 1 </list> <value> x[0] </value> </channel>", lambda x, y, z, b: x == 1 and b == 0),
    (f"<instantiation> {X} <values> 2 0 1 </values> </instantiation>", lambda x, y, z, b: (x, y, z) == (2, 0, 1)),
    (f"<regular> {X} <transitions> (a,0,a)(a,1,c)(c,0,a)(c,2,c) </transitions> <start> a </start>"
     " <final> c </final> </regular>", lambda x, y, z, b: (x, y, z) in ((0, 0, 1), (0, 1, 2), (1, 2, 2), (1, 0, 1))),
    (f"<mdd> {X} <transitions> (r,0,p)(r,1,q)(p,2,u)(q,3,u)(u,1,t)(u,0,t) </transitions> </mdd>",
     lambda x, y, z, b: (x, y) in ((0, 2), (1, 3)) and z < 2),
    (f"<circuit> {X} </circuit>", lambda x, y, z, b: sorted((x, y, z)) == [0, 1, 2] and (x, y, z) != (0, 1, 2)),
    (f"<circuit> {X} <size> 2 </size> </circuit>",
     lambda x, y, z, b: (x, y, z) in ((1, 0, 2), (2, 1, 0), (0, 2, 1))),
    ("<noOverlap> <origins> x[] </origins> <lengths> 1 2 1 </lengths> </noOverlap>",
     lambda x, y, z, b: (x < y or y + 2 <= x) and (y + 2 <= z or z < y) and x != z),
    ("<noOverlap> <origins> (x[0],b)(x[1],0) </origins> <lengths> (2,1)(1,1) </lengths> </noOverlap>",
     lambda x, y, z, b: b or x + 2 <= y or y + 1 <= x),
    ("<noOverlap> <origins> x[] </origins> <lengths> 2 0 1 </lengths> </noOverlap>",
     lambda x, y, z, b: z < x or x + 2 <= z),
    ('<noOverlap zeroIgnored="false"> <origins> x[] </origins> <lengths> 2 0 1 </lengths> </noOverlap>',
     lambda x, y, z, b: (z < x or x + 2 <= z) and (y <= x or x + 2 <= y)),
    ("<noOverlap> <origins> (x[0],0)(x[1],1)(x[2],1) </origins> <lengths> (2,3)(0,1)(b,2) </lengths> </noOverlap>",
     lambda x, y, z, b: not b or z < x or x + 2 <= z),
    ('<noOverlap zeroIgnored="false"> <origins> (x[0],0)(x[1],1) </origins> <lengths> (2,3)(0,1) </lengths>'
     ' </noOverlap>', lambda x, y, z, b: y <= x or x + 2 <= y),
    ("<cumulative> <origins> x[] </origins> <lengths> 2 2 2 </lengths> <heights> 1 2 1 </heights>"
     " <condition> (le,2) </condition> </cumulative>",
     lambda x, y, z, b: all(sum(h for s, h in ((x, 1), (y, 2), (z, 1)) if s <= t < s + 2) <= 2 for t in range(6))),
    ("<clause> b not(b) </clause>", lambda x, y, z, b: True),
    ("<clause> not(b) </clause>", lambda x, y, z, b: not b),
    ("<binPacking> <list> b x[0] </list> <sizes> 2 1 </sizes> <limits> 2 2 1 0 0 0 </limits> </binPacking>",
     lambda x, y, z, b: x != b and x < 3),
    ("<binPacking> <list> x[0] sub(b,1) </list> <sizes> 2 1 </sizes> <loads> 1 x[1] 2 </loads> </binPacking>",
     lambda x, y, z, b: b and x == 2 and y == 0),
    (f"<binPacking> {X} <sizes> 2 1 2 </sizes> <condition> (le,3) </condition> </binPacking>",
     lambda x, y, z, b: all(sum(w for v, w in ((x, 2), (y, 1), (z, 2)) if v == bin) <= 3 for bin in range(4))),
    (f"<knapsack> {X} <weights> 1 2 1 </weights> <condition> (le,4) </condition> <profits> 2 2 1 </profits>"
     " <condition> (ge,b) </condition> </knapsack>",
     lambda x, y, z, b: x + 2 * y + z <= 4 and 2 * x + 2 * y + z >= b),
    ("<group> <intension> lt(%0,%1) </intension> <args> x[0] x[1] </args> <args> x[1] x[2] </args> </group>",
     lambda x, y, z, b: x < y < z),
    ("<group> <sum> <list> %... </list> <condition> (eq,%0) </condition> </sum> <args> b x[0..1] </args> </group>",
     lambda x, y, z, b: x + y == b),
    ("<slide> <list> x[] </list> <intension> ne(%0,%1) </intension> </slide>", lambda x, y, z, b: x != y != z),
    ('<slide circular="true"> <list> x[] </list> <intension> ne(%0,%1) </intension> </slide>',
     lambda x, y, z, b: len({x, y, z}) == 3),
    ("<intension> notin(x[0],set(1,3)) </intension>", lambda x, y, z, b: x not in (1, 3)),
    ("<intension> eq(b,notin(x[0],set(x[1],2))) </intension>", lambda x, y, z, b: b == (x not in (y, 2))),
    ("<intension> ne(x[0],x[1],x[2]) </intension>", lambda x, y, z, b: len({x, y, z}) == 3),
    ("<intension> eq(b,ne(x[0],x[1],x[2])) </intension>", lambda x, y, z, b: b == (len({x, y, z}) == 3)),
    (f"<extension> {X} <conflicts> </conflicts> </extension><clause> b </clause>", lambda x, y, z, b: b),
    (f'<extension type="hybrid-2"> {X} <supports> (1,2..3,≠1)({{0,2}},=c0,*)(3,≤c0,∁{{0,3}})(*,=c0+1,=c0+c1)'
     " </supports> </extension>",
     lambda x, y, z, b: (x == 1 and y in (2, 3) and z != 1) or (x in (0, 2) and y == x)
     or (x == 3 and y <= x and z in (1, 2)) or (y == x + 1 and z == x + y)),
    (f'<extension type="hybrid-1"> {X} <conflicts> (1..2,&lt;2,*)(*,≥c0,﹥1) </conflicts> </extension>',
     lambda x, y, z, b: not (x in (1, 2) and y < 2) and not (y >= x and z > 1)),
    ("<allDifferent> <matrix> (x[0],x[1])(x[2],b) </matrix> <except> 0 </except> </allDifferent>",
     lambda x, y, z, b: all(p != q or p == 0 for p, q in ((x, y), (z, b), (x, z), (y, b)))),
    ("<allDifferent> <list> x[0] x[1] </list> <list> x[2] b </list> <except> (0,0)(1,1) </except> </allDifferent>",
     lambda x, y, z, b: (x, y) != (z, b) or (x, y) in ((0, 0), (1, 1))),
    (f"<allEqual> {X} <except> 0 3 </except> </allEqual>",
     lambda x, y, z, b: len({v for v in (x, y, z) if v not in (0, 3)}) <= 1),
    (f"<nValues> {X} <except> 0 2 </except> <condition> (eq,1) </condition> </nValues>",
     lambda x, y, z, b: len({x, y, z} - {0, 2}) == 1),
    (f"<count> {X} <values> b 3 </values> <condition> (ge,2) </condition> </count>",
     lambda x, y, z, b: sum(v in (b, 3) for v in (x, y, z)) >= 2),
    ("<cardinality> <list> x[0..1] </list> <values> x[2] b </values> <occurs> 1 0..1 </occurs> </cardinality>",
     lambda x, y, z, b: (x, y).count(z) == 1 and (x, y).count(b) <= 1),
    ('<cardinality> <list> x[0..1] </list> <values closed="true"> x[2] b </values> <occurs> 1 1 </occurs>'
     " </cardinality>", lambda x, y, z, b: z != b and sorted((x, y)) == sorted((z, b))),
    ("<precedence> x[] </precedence>",
     lambda x, y, z, b: all(v == 0 or v - 1 in (x, y, z)[:i] for i, v in enumerate((x, y, z)))),
    (f'<precedence> {X} <values covered="true"> 2 0 </values> </precedence>',
     lambda x, y, z, b: 0 in (x, y, z) and 2 in (x, y, z)[: (x, y, z).index(0)]),
    (f'<maximum> {X} <index rank="last"> b </index> <condition> (ge,2) </condition> </maximum>',
     lambda x, y, z, b: (x, y, z)[b] == max(x, y, z) >= 2 and max(x, y, z) not in (x, y, z)[b + 1 :]),
    (f'<minimum> {X} <index rank="first"> b </index> </minimum>',
     lambda x, y, z, b: (x, y, z).index(min(x, y, z)) == b),
    (f"<maximumArg> {X} <condition> (eq,b) </condition> </maximumArg>",
     lambda x, y, z, b: (x, y, z)[b] == max(x, y, z)),
    (f'<maximumArg rank="first"> {X} <condition> (ge,b) </condition> </maximumArg>',
     lambda x, y, z, b: (x, y, z).index(max(x, y, z)) >= b),
    (f'<minimumArg rank="last"> {X} <condition> (in,{{0,2}}) </condition> </minimumArg>',
     lambda x, y, z, b: 2 - (z, y, x).index(min(x, y, z)) in (0, 2)),
    ('<minimumArg> <list startIndex="1"> x[] </list> <condition> (ne,2) </condition> </minimumArg>',
     lambda x, y, z, b: min(x, z) == min(x, y, z)),
    (f'<element> {X} <index rank="first"> b </index> <value> 2 </value> </element>',
     lambda x, y, z, b: 2 in (x, y, z) and (x, y, z).index(2) == b),
    (f'<element> {X} <index rank="last"> x[0] </index> <condition> (ge,2) </condition> </element>',
     lambda x, y, z, b: x < 3 and (x, y, z)[x] >= 2 and all(v < 2 for v in (x, y, z)[x + 1 :])),
    (f"<element> {X} <condition> (gt,2) </condition> </element>", lambda x, y, z, b: max(x, y, z) > 2),
    (f"<regular> {X} <transitions> (a,0,a)(a,0,c)(a,1,a)(c,1,c)(c,2,a) </transitions> <start> a </start>"
     " <final> c </final> </regular>",
     lambda x, y, z, b: (x, y, z) in {(0, 1, 1), (1, 0, 1), (0, 0, 1), (0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0),
                                      (0, 2, 0)}),
    ("<flow> <list> x[] b </list> <balance> 2 0 -2 </balance> <arcs> (0,1)(1,2)(0,2)(2,0) </arcs>"
     " <weights> 1 1 3 1 </weights> <condition> (le,6) </condition> </flow>",
     lambda x, y, z, b: x + z - b == 2 and y == x and x + y + 3 * z + b <= 6),
    ("<cumulative> <origins> x[] </origins> <lengths> 2 1 2 </lengths> <heights> 1 2 1 </heights>"
     " <condition> (lt,3) </condition> </cumulative>",
     lambda x, y, z, b: all(sum(h for s, d, h in ((x, 2, 1), (y, 1, 2), (z, 2, 1)) if s <= t < s + d) < 3
                            for t in range(6))),
    ('<slide> <list offset="2" collect="1"> x[0] x[2] x[1] </list> <list collect="2"> x[] </list>'
     " <sum> <list> %0 %1 %2 </list> <condition> (le,5) </condition> </sum> </slide>",
     lambda x, y, z, b: x + x + y <= 5 and y + y + z <= 5),
    ('<block class="a"> <intension> eq(x[0],1) </intension> <block> <clause> b </clause> </block> </block>',
     lambda x, y, z, b: x == 1 and b),
]  # fmt: skip


@pytest.mark.parametrize(("constraint", "holds"), CASES, ids=lambda case: case[:60] if isinstance(case, str) else "")
def test_every_constraint(tmp_path, constraint, holds):
    expected = {s for s in itertools.product(range(4), range(4), range(4), range(2)) if holds(*s)}
    assert 0 < len(expected) <= 128
    assert solutions(tmp_path, constraint) == expected


def test_variables(tmp_path):
    variables = """<var id="a" note="one"> 1 3..4 </var><var id="c" as="a"/>
        <array id="m" size="[2][2]" startIndex="1"> <domain for="m[1][] m[2][1]"> 0 </domain>
        <domain for="others"> 5..6 </domain> </array><array id="n" size="[2]" as="a"/>
        <array id="p" size="[3]"> <domain for="p[0] p[2]"> 7 </domain> </array>
        <array id="q" size="[1][2]"> <domain for="q[0][]"> 2 </domain> <domain for="others"> 8 </domain> </array>"""
    names = ("a", "c", "m[1][2]", "m[2][2]", "n[1]", "p[2]", "q[0][1]")
    text = "<allEqual> a c n[] </allEqual><sum> <list> p[] m[][1] </list> <condition> (eq,14) </condition> </sum>"
    expected = {(v, v, 0, w, v, 7, 2) for v in (1, 3, 4) for w in (5, 6)}
    assert solutions(tmp_path, text, variables, names) == expected


@pytest.mark.parametrize(
    ("objective", "value"),
    [
        ("<minimize> x[0] </minimize>", 0),
        ("<maximize> mul(x[0],b) </maximize>", 2),
        ('<maximize type="sum"> <list> x[] </list> <coeffs> 1 2 3 </coeffs> </maximize>', 14),
        ('<maximize type="sum"> x[] </maximize>', 6),
        ('<minimize type="maximum"> x[] </minimize>', 2),
        ('<maximize type="minimum"> x[] b </maximize>', 1),
        ('<minimize type="nValues"> x[] </minimize>', 3),
        ('<maximize type="product"> x[] </maximize>', 6),
    ],
)
def test_objectives(tmp_path, objective, value):
    constraint = "<allDifferent> x[] </allDifferent> <intension> le(x[0],2) </intension>"
    text = problem(constraint, objective=f"<objectives> {objective} </objectives>", kind="COP")
    model = read(tmp_path, text, "p.xml.gz")
    result = model.solve()
    assert (result.status, result.value) == ("optimal", value)


@pytest.mark.parametrize(
    ("aims", "best"),
    [
        ('<minimize type="sum"> x[] </minimize> <maximize> x[1] </maximize>', min),
        ("<maximize> x[2] </maximize> <minimize> x[0] </minimize> <maximize> x[1] </maximize>", max),
    ],
)
def test_objectives_in_turn(tmp_path, aims, best):
    constraint = "<sum> <list> x[] </list> <coeffs> 1 2 1 </coeffs> <condition> (ge,4) </condition> </sum>"
    section = f'<objectives combination="lexico"> {aims} </objectives>'
    result = read(tmp_path, problem(constraint, objective=section, kind="COP")).solve()
    triples = [t for t in itertools.product(range(4), repeat=3) if t[0] + 2 * t[1] + t[2] >= 4]
    worths = [(sum(t), -t[1]) if best is min else (t[2], -t[0], t[1]) for t in triples]
    assert (result.status, tuple(objective.value for objective in result.objectives)) == ("optimal", best(worths))


SYMBOLS = '<array id="x" size="[3]" type="symbolic"> a b c </array><var id="y" as="x[0]"/><var id="z"> 0..2 </var>'


@pytest.mark.parametrize(
    ("constraint", "holds"),
    [
        ("<allDifferent> x[] </allDifferent>", lambda x, y, z: len(set(x)) == 3),
        ("<intension> eq(x[0],b) </intension>", lambda x, y, z: x[0] == "b"),
        ("<intension> or(ne(y,c),in(x[1],set(a,c))) </intension>", lambda x, y, z: y != "c" or x[1] in "ac"),
        ("<intension> iff(eq(y,a),eq(z,2)) </intension>", lambda x, y, z: (y == "a") == (z == 2)),
        (
            "<extension><list> x[0] x[1] z </list><supports> (a,b,1)(c,*,2) </supports></extension>",
            lambda x, y, z: (x[0], x[1], z) == ("a", "b", 1) or (x[0], z) == ("c", 2),
        ),
        ("<extension><list> y </list><conflicts> a c </conflicts></extension>", lambda x, y, z: y == "b"),
        (
            "<regular><list> x[] </list><transitions> (a,a,a)(a,b,q)(q,c,q) </transitions>"
            "<start> a </start><final> q </final></regular>",
            lambda x, y, z: "".join(x) in ("aab", "abc", "bcc"),
        ),
        (
            "<count><list> x[] </list><values> a b </values><condition> (eq,z) </condition></count>",
            lambda x, y, z: sum(v in "ab" for v in x) == z,
        ),
        (
            "<cardinality><list> x[] </list><values> c a </values><occurs> 1 0..1 </occurs></cardinality>",
            lambda x, y, z: x.count("c") == 1 and x.count("a") <= 1,
        ),
        (
            "<group><intension> imp(eq(%0,%1),ne(%2,%1)) </intension>"
            "<args> x[0] a x[1] </args><args> y c x[2] </args></group>",
            lambda x, y, z: not (x[0] == "a" == x[1]) and not (y == "c" == x[2]),
        ),
        (
            "<element><list> x[] </list><index> z </index><value> b </value></element>",
            lambda x, y, z: x[z] == "b",
        ),
        (
            "<instantiation><list> x[0] y </list><values> c a </values></instantiation>",
            lambda x, y, z: x[0] + y == "ca",
        ),
    ],
)
def test_symbols_are_numbers_in_the_order_of_the_file(tmp_path, constraint, holds):
    found = solutions(tmp_path, constraint, SYMBOLS, ("x[0]", "x[1]", "x[2]", "y", "z"))
    rows = itertools.product(range(3), repeat=5)
    assert found == {row for row in rows if holds(["abc"[i] for i in row[:3]], "abc"[row[3]], row[4])}


def test_symbols_with_the_name_of_a_variable(tmp_path):
    variables = '<var id="a" type="symbolic"> a b </var>'
    with pytest.raises(UnsupportedError, match="the symbol a has the name of a variable; rename one of them"):
        read(tmp_path, problem("<intension> eq(a,b) </intension>", variables))


def test_other_combinations_of_objectives(tmp_path):
    section = "<objectives> <minimize> x[0] </minimize> <minimize> x[1] </minimize> </objectives>"
    with pytest.raises(UnsupportedError, match='in turn only: <objectives combination="lexico">'):
        read(tmp_path, problem(objective=section, kind="COP"))


def test_the_docs_example_becomes_tables():
    model = cp.read(Path(__file__).parents[2] / "examples" / "shifts.xml")
    assert model.solve().value == elimina.solve(model.to_model()).value


MALFORMED = [
    ("<sum> left <list> x[] </list> <condition> (le,5) </condition> </sum>", r":6: expected elements in <sum>.*'left'"),
    ("<intension> eq(x[0],y) </intension>", r":6: there is no variable 'y'"),
    ("<intension> eq(x[0] </intension>", r":6: expected a comma or a parenthesis"),
    ("<intension> eq(x[0],1)) </intension>", r":6: expected the end of an expression, found '\)'"),
    ("<intension> eq(x[],1) </intension>", r":6: x\[\] is 3 variables where one is expected"),
    ("<intension> not(x[0],b) </intension>", r":6: not has 2 arguments; expected 1"),
    ("<intension> eq(x[3],1) </intension>", r":6: x\[3\]: the index 3 is not within 0\.\.2"),
    ("<intension> eq(x[0][1],1) </intension>", r":6: .* has 2 indices; the array has 1 dimension"),
    ("<intension> </intension>", r":6: expected an expression"),
    ("<extension> <list> b </list> </extension>", r":6: expected <supports> or <conflicts>"),
    ("<extension> <list> x[] </list> <supports> (0,1) </supports> </extension>", r":6: the tuple \(0,1\) has 2 values"),
    ("<extension> <list> x[] </list> <supports> (0,1,2 </supports> </extension>", r":6: expected tuples"),
    ("<sum> <list> x[] </list> </sum>", r":6: expected <condition> in <sum>"),
    ("<sum> <list> x[] </list> <condition> le 3 </condition> </sum>", r":6: expected a condition such as \(le,5\)"),
    ("<sum> <list> x[] </list> <coeffs> 1 </coeffs> <condition> (le,3) </condition> </sum>", r":6: .* 1 coefficient"),
    ("<sum> <list> x[] </list> <condition> (xx,3) </condition> </sum>", r":6: expected an operator of a condition"),
    ("<group> <intension> eq(%1,0) </intension> <args> b </args> </group>", r":6: there is no argument for %1"),
    ("<group/>", r":6: expected a constraint and then <args>"),
    *(
        (constraint, r":6: expected a Boolean, found x\[0\] with values from 0 to 3")
        for constraint in (
            "<clause> x[0] b </clause>",
            "<clause> b not(x[0]) </clause>",
            "<intension> x[0] </intension>",
            "<intension> or(b,x[0]) </intension>",
            "<intension> eq(xor(x[0],b),1) </intension>",
            "<intension> eq(1,if(x[0],b,1)) </intension>",
            "<channel> <list> b x[0] </list> <value> x[1] </value> </channel>",
        )
    ),
    ("<clause> 2 b </clause>", r":6: expected a Boolean, found 2"),
    (
        "<intension> not(add(x[0],b)) </intension>",
        r":6: expected a Boolean, found an expression with values from 0 to 4",
    ),
    ("<allDifferent> x[ </allDifferent>", r":6: expected a variable or a number"),
    ("<clause> not(b </clause>", r":6: the parentheses do not match"),
    ("<element> <list> x[] </list> <index> b </index> </element>", r":6: expected <condition> in <element>"),
    ("<slide/>", r":6: expected a list and a constraint in <slide>"),
    ("<allDifferent> <list> b </list> <list> x[] </list> </allDifferent>", r":6: .* lists of 1, 3 items"),
    ("<allDifferent> <matrix> (1,2)(b) </matrix> </allDifferent>", r":6: <matrix> has lists of 2, 1 items"),
    ("<noOverlap> <origins> x[] </origins> <lengths> 1 2 </lengths> </noOverlap>", r":6: .* lists of 3, 2 items"),
    ("<x", r":7:\d+: expected well-formed XML|:\d+: expected well-formed XML"),
]


@pytest.mark.parametrize(("constraint", "message"), MALFORMED)
def test_malformed_constraints(tmp_path, constraint, message):
    with pytest.raises(FormatError, match=message):
        read(tmp_path, problem(constraint))


UNSUPPORTED = [
    *(
        (text, f"{unread}.* is not supported")
        for text, unread in (
            (
                "<sum> <list> x[] </list> <except> 0 </except> <condition> (le,5) </condition> </sum>",
                "<except> in <sum>",
            ),
            (
                '<sum> <list startIndex="1"> x[] </list> <condition> (le,5) </condition> </sum>',
                "startIndex=.1. of <list>",
            ),
            ('<clause covered="true"> b </clause>', "covered=.true. of <clause>"),
            ('<block when="b"> <clause> b </clause> </block>', "when=.b. of <block>"),
            ("<channel> <list> b </list> <list> x[] </list> <size> 3 </size> </channel>", "<size> in <channel>"),
            (
                "<group> <clause> %0 </clause> <args> b <unknown/> </args> </group>",
                "<unknown> in <args>",
            ),
            (
                "<slide> <list> x[] <unknown/> </list> <intension> lt(%0,%1) </intension> </slide>",
                "<unknown> in <list>",
            ),
            ("<intension> <function> b </function> <cost> 3 </cost> </intension>", "<cost> in <intension>"),
        )
    ),
    ("<stretch> x[] </stretch>", "the constraint <stretch> is not supported"),
    ('<intension reifiedBy="b"> eq(x[0],1) </intension>', 'reifiedBy="b" of <intension> is not supported'),
    (
        "<cumulative> <origins> x[] </origins> <lengths> 2x3 </lengths> <heights> 1x3 </heights>"
        " <condition> (ge,1) </condition> </cumulative>",
        r"the condition \(ge,1\) of <cumulative>",
    ),
    ("<intension> eq(sin(x[0]),1) </intension>", "the operator 'sin' is not supported"),
    ("<intension> eq(pow(2,sub(x[0],1)),1) </intension>", "a negative exponent is not supported"),
    ("<sum> <list> 1x99999999 </list> <condition> (le,3) </condition> </sum>", "at most 4,194,304 are supported"),
    ("<intension> le(x[0],9999999999999999) </intension>", "is beyond 2"),
]


@pytest.mark.parametrize(("constraint", "message"), UNSUPPORTED)
def test_what_is_not_supported(tmp_path, constraint, message):
    with pytest.raises(UnsupportedError, match=f":6: .*{message}"):
        read(tmp_path, problem(constraint))


def test_malformed_files(tmp_path):
    for variables, message in (
        ('<var id="a"/>', "the variable a has an empty domain"),
        ('<var id="a"> 3..1 </var>', "3 is above 1"),
        ('<var id="a"> q </var>', "expected a whole number, found 'q'"),
        ('<var id="2"> 1 </var>', "expected a name"),
        ('<var id="a"> 1 </var><var id="a"> 1 </var>', "two variables 'a'"),
        ('<var id="a" as="z"/>', "no variable 'z'"),
        ('<array id="a" size="3"> 1 </array>', "expected sizes"),
        ('<array id="a" size="[99999][99999]"> 1 </array>', "at most 4,194,304"),
        ('<var id="a" type="set"> u v </var>', "type set are not supported"),
        ('<var id="a"> u v </var>', "expected a whole number, found 'u'"),
        ('<var id="a" type="symbolic"> u le </var>', "the symbol le has the name of an operator; rename it"),
    ):
        with pytest.raises((FormatError, UnsupportedError), match=message):
            read(tmp_path, problem(variables=variables))
    with pytest.raises(UnsupportedError, match="problems of the type WCSP"):
        read(tmp_path, problem(kind="WCSP"))
    with pytest.raises(FormatError, match="nesting is too deep"):
        read(tmp_path, problem(f"<intension> eq({'neg(' * 5000}b{')' * 5000},0) </intension>"))
    with pytest.raises(InputError, match="cannot read"):
        cp.read(tmp_path / "none.xml")


def test_damaged_files_are_errors_or_problems(tmp_path):
    rng = random.Random(1)
    spare = ["", "-1", "99", "x[]", "(", "1x3", "0..2", "b", "*", "(0,1)", "%0", "<list> b </list>", "9" * 30]
    for _ in range(600):
        words = re.split(r"(\s+|[()<>,\]\[])", problem(rng.choice(CASES)[0]))
        for _ in range(rng.randint(1, 3)):
            words[rng.randrange(len(words))] = rng.choice(spare + words)
        with contextlib.suppress(EliminaError):
            read(tmp_path, "".join(words)).solve(time_limit=0.1)


def test_group_shares_table(tmp_path, monkeypatch):
    """Constraints of a group with equal domains read and expand their table once; other domains give other tuples."""
    texts = []

    def rows_of_table(text, arity, read=tables.rows_of_table):
        texts.append(text)
        return read(text, arity)

    monkeypatch.setattr(tables, "rows_of_table", rows_of_table)
    variables = '<array id="x" size="[6]"> 0..3 </array><var id="b"> 0 1 </var>'
    for kind in ("supports", "conflicts"):
        texts.clear()
        arguments = "".join(f"<args> x[{i}] x[{i + 1}] </args>" for i in range(5)) + "<args> x[0] b </args>"
        group = (
            f"<group><extension><list> %0 %1 </list><{kind}> (0,*)(1,1)(3,3) </{kind}></extension>{arguments}</group>"
        )
        model = read(tmp_path, problem(group, variables))
        assert len(texts) == 2
        pairs = {(0, value) for value in range(4)} | {(1, 1), (3, 3)}
        if kind == "conflicts":
            pairs = set(itertools.product(range(4), repeat=2)) - pairs
        expected = {
            (*values, b)
            for values in itertools.product(range(4), repeat=6)
            for b in range(2)
            if {*itertools.pairwise(values), (values[0], b)} <= pairs
        }
        names = [*(f"x[{i}]" for i in range(6)), "b"]
        assert {tuple(s[name] for name in names) for s in model.solve(all_solutions=True).solutions} == expected
