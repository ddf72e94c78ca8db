"""Reports in a real browser: no complaints, and controls that work."""

from __future__ import annotations

import pytest

import elimina
from elimina.generate import grid_model
from tests.reporting.browser import needs_browser, visit
from tests.reporting.test_report import HOSTILE, PUMP, hostile_model

pytestmark = needs_browser

PIXELS = """
const canvas = document.querySelector('[data-key=graph] canvas');
const wait = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
const shot = async () => { await wait(); return canvas.toDataURL(); };
const press = (key) => canvas.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
"""


def test_searching_and_choosing_a_variable(tmp_path):
    page = tmp_path / "page.html"
    elimina.report(PUMP, evidence={"Alarm": "on"}).save(page)
    script = f"""{PIXELS}
    const root = document.querySelector('[data-key=graph]'), input = root.querySelector('input');
    const first = await shot();
    input.value = 'pUmP';
    input.dispatchEvent(new Event('input'));
    const found = [...root.querySelectorAll('.hits button')].map((one) => one.textContent);
    const marked = await shot();
    input.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Enter' }}));
    const heading = root.querySelector('.details h3').textContent;
    const near = [...root.querySelectorAll('.details button')].map((one) => one.textContent).sort();
    const chosen = await shot();
    root.querySelector('[data-do=all]').click();
    input.value = '';
    input.dispatchEvent(new Event('input'));
    const left = root.querySelector('.details').textContent;
    return {{ found, heading, near, left, changes: [first !== marked, marked !== chosen, chosen !== await shot()] }};
    """
    told = visit(page, script, tmp_path)
    assert told["found"] == ["Pump"]
    assert told["heading"] == "Pump"
    model = elimina.read(PUMP)
    pump = model.index("Pump")
    pairs = elimina.viz.graph.edges_of(model)
    near = {a if b == pump else b for a, b in pairs if pump in (a, b)}
    assert told["near"] == sorted(model.variables[v].name for v in near)
    assert told["changes"] == [True, True, True]
    assert told["left"] == ""


def test_zooming_and_moving_by_keys_buttons_and_pointer(tmp_path):
    page = tmp_path / "page.html"
    elimina.report(grid_model(4, 3, 0.1, columns=15)).save(page)
    script = f"""{PIXELS}
    const shots = [await shot()];
    for (const key of ['+', 'ArrowLeft', 'ArrowUp', '-']) {{ press(key); shots.push(await shot()); }}
    press('0');
    const again = await shot();
    document.querySelector('[data-key=graph] [data-do=in]').click();
    const zoomed = await shot();
    press('0');
    const select = document.querySelector('[data-key=graph] select');
    select.selectedIndex = 1;
    select.dispatchEvent(new Event('change'));
    const legend = document.querySelector('[data-key=graph] .legend').textContent;
    return {{ different: new Set(shots).size, again: again === shots[0], zoomed: zoomed !== again,
      recoloured: again !== await shot(), legend }};
    """
    told = visit(page, script, tmp_path)
    assert told == {
        "different": 5,
        "again": True,
        "zoomed": True,
        "recoloured": True,
        "legend": told["legend"],
    }
    assert told["legend"].startswith("number of neighbours: 0")


def test_hostile_names_do_nothing(tmp_path):
    page = tmp_path / "page.html"
    elimina.report(hostile_model("probability"), evidence={HOSTILE[0]: "ß & <b>"}).save(page)
    script = f"""{PIXELS}
    let alerts = 0;
    window.alert = () => {{ alerts += 1; }};
    const input = document.querySelector('[data-key=graph] input');
    input.value = '</script>';
    input.dispatchEvent(new Event('input'));
    input.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Enter' }}));
    await wait();
    return [alerts, document.querySelectorAll('img').length, document.querySelector('.details h3').textContent];
    """
    assert visit(page, script, tmp_path) == [0, 0, HOSTILE[0]]


@pytest.mark.parametrize("count", [10, 1000])
def test_pages_fit_a_narrow_screen_and_label_their_controls(tmp_path, count):
    page = tmp_path / "page.html"
    elimina.report(grid_model(2, 3, 0.1, columns=count // 2)).save(page)
    script = f"""{PIXELS}
    document.body.style.width = '380px';
    await wait();
    const unnamed = [...document.querySelectorAll('button, input, select, canvas')].filter((one) =>
      !one.textContent.trim() && !one.getAttribute('aria-label') && !(one.labels && one.labels.length));
    const wide = [...document.querySelectorAll('main > section > *')].filter((one) => one.scrollWidth > 400
      && getComputedStyle(one).overflowX !== 'auto');
    return [unnamed.length, wide.length, document.querySelectorAll('h1').length, document.documentElement.lang];
    """
    assert visit(page, script, tmp_path) == [0, 0, 1, "en"]


def test_contrast(tmp_path):
    page = tmp_path / "page.html"
    elimina.report(PUMP).save(page)
    script = """
    const sheets = [...document.styleSheets[0].cssRules];
    const light = sheets.find((rule) => rule.selectorText === ':root').style;
    const dark = sheets.find((rule) => rule.conditionText === '(prefers-color-scheme: dark)').cssRules[0].style;
    const shade = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
      .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
      .reduce((sum, part, k) => sum + part * [0.2126, 0.7152, 0.0722][k], 0);
    const contrast = (style, one, other) => {
      const [a, b] = [one, other].map((name) => shade(style.getPropertyValue(name).trim()));
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    };
    const texts = ['--ink', '--faint', '--accent'];
    const grounds = ['--ground', '--raised'];
    const pairs = texts.flatMap((text) => grounds.map((ground) => [text, ground]));
    return [light, dark].flatMap((style) => pairs.map(([text, ground]) => contrast(style, text, ground)));
    """
    assert min(visit(page, script, tmp_path)) >= 4.5
