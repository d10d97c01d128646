#!/usr/bin/env python3
"""Opens reports in headless Chromium. Checks console errors, hover texts, filters, kernels, hostile texts and many
rows.

Usage: check_report.py PAPER.nc ROOFS.nc. Exit status 77 without Chromium, Selenium or Plotly."""

import copy
import io
import os
import shutil
import sys
import tempfile

import numpy as np
import pandas

try:
    import plotly  # noqa: F401
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select, WebDriverWait
except ImportError as missing:
    print(f"skipped: {missing} (packages python3-selenium python3-plotly)")
    sys.exit(77)

import roofsweep_post as post
from roofsweep_post import report

HOSTILE = '<img src=x onerror="document.title=1"></script><b>bold</b> & {{DATA}}'
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,1400", "--disable-gpu",
           "--enable-unsafe-swiftshader"]  # fmt: skip


def browser(folder):
    chromium, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not chromium or not driver:
        print("skipped: no Chromium (packages chromium chromium-driver)")
        sys.exit(77)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in [*OPTIONS, f"--user-data-dir={folder}/profile"]:
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=webdriver.chrome.service.Service(driver), options=options)


def opened(chrome, folder, data):
    """Writes a report, opens it, and waits until it is drawn. Returns the size of the report in bytes."""
    path = os.path.join(folder, "report.html")
    text = report.page([data])
    for word in ("http://", "https://"):  # the page must fetch nothing; libraries in it contain links as texts
        assert word not in text, f"the page holds {word}"
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    chrome.get(f"file://{path}")
    wait(chrome, "return window.report !== undefined && document.querySelectorAll('#plot .main-svg').length > 0")
    quiet(chrome)
    return os.path.getsize(path)


def wait(chrome, script):
    WebDriverWait(chrome, 900).until(lambda found: found.execute_script(script))


def quiet(chrome):
    wrong = [line for line in chrome.get_log("browser") if line["level"] in ("SEVERE", "ERROR")]
    assert not wrong, wrong


def count(chrome):
    return int(chrome.find_element(By.ID, "count").text.split()[0])


def choose(chrome, axis, words):
    select = Select(chrome.find_element(By.CSS_SELECTOR, f'#filters select[data-axis="{axis}"]'))
    select.deselect_all()
    for word in words:
        select.select_by_value(word)


def check_page(chrome, data):
    table = post.rows(data)
    assert count(chrome) == len(table)
    # Top of the page: numbers of rows, limiters, a verdict on each device. Table: pages, sorting, values in per cent.
    assert f"{len(table)} of {len(post.rows(data, measured=False))} rows" in chrome.find_element(By.ID, "text").text
    assert "latency " in chrome.find_element(By.ID, "limiters").get_attribute("aria-label")
    assert len(chrome.find_elements(By.CSS_SELECTOR, "#verdicts tbody tr")) == data.sizes["device"]
    assert chrome.find_element(By.ID, "page").text == f"page 1 of {-(-len(table) // 100)}"
    chrome.find_element(By.ID, "after").click()
    assert chrome.find_element(By.ID, "page").text.startswith("page 2 of ")
    head = chrome.find_element(By.CSS_SELECTOR, "#rows th:nth-child(3)")
    assert head.get_attribute("aria-sort") == "descending" and head.get_attribute("title"), head.text
    head.find_element(By.TAG_NAME, "button").send_keys("\n")
    head = chrome.find_element(By.CSS_SELECTOR, "#rows th:nth-child(3)")
    assert head.get_attribute("aria-sort") == "ascending" and head.text.startswith("time ("), head.text
    head.find_element(By.TAG_NAME, "button").send_keys("\n")
    Select(chrome.find_element(By.ID, "figure")).select_by_visible_text("time and noise")
    ticks = [tick.text for tick in chrome.find_elements(By.CSS_SELECTOR, "#plot .ytick text")]
    assert ticks and all(text.endswith("%") for text in ticks), ticks
    Select(chrome.find_element(By.ID, "figure")).select_by_index(0)
    # Search.
    chrome.find_element(By.ID, "search").send_keys("LSTM-batch")
    assert count(chrome) == table["name"].str.contains("lstm-batch").sum(), count(chrome)
    chrome.find_element(By.ID, "reset").click()
    # Filters by one axis, by several values of an axis, and by several axes.
    choose(chrome, "precision", ["fp16"])
    assert count(chrome) == (table["precision"] == "fp16").sum()
    choose(chrome, "label", ["conv2d-filters"])
    own = table[table["label"].map(lambda text: "conv2d-filters" in text.split())]
    fp16 = own[own["precision"] == "fp16"]
    assert count(chrome) == len(fp16)
    choose(chrome, "pass", ["forward", "backward-data"])
    fp16 = fp16[fp16["pass"].isin(["forward", "backward-data"])]
    assert count(chrome) == len(fp16)
    # The table of rows begins with the slowest one.
    slowest = fp16.loc[fp16["time_median"].idxmax()]
    line = chrome.find_element(By.CSS_SELECTOR, "#rows tbody tr")
    assert f"filters={slowest['filters']:.0f}" in line.text, line.text
    # The figure shows the values of the file.
    drawn = chrome.execute_script("return document.getElementById('plot').data.map(d => [d.name, d.x, d.y])")
    measured = next(one for one in drawn if one[0] == "fp16, measured")
    longer = np.maximum(measured[1], measured[2])
    assert np.allclose(np.sort(longer), np.sort(fp16["own_time"]), rtol=3e-4), longer
    # A click on the head of a column sorts the table. The URL stores order and filters. The CSV file has the filtered
    # rows.
    chrome.find_element(By.CSS_SELECTOR, "#rows th:nth-child(6)").click()
    Select(chrome.find_element(By.ID, "figure")).select_by_visible_text("Roofline")
    address = chrome.current_url
    chrome.get("about:blank")
    chrome.get(address)
    wait(chrome, "return window.report !== undefined && document.querySelectorAll('#plot .main-svg').length > 0")
    assert count(chrome) == len(fp16) and "Roofline" in address, address
    found = pandas.read_csv(io.StringIO(chrome.execute_script("return window.report.csv()")))
    assert np.allclose(found["roof_fraction"], np.sort(fp16["roof_fraction"]), rtol=3e-4), found
    farthest = chrome.find_element(By.CSS_SELECTOR, "#rows tbody td:nth-child(6)").text
    assert farthest == f"{100 * fp16['roof_fraction'].min():.1f} %", farthest
    roofs = chrome.execute_script("return document.getElementById('plot').data.flatMap(d => d.text || [])")
    assert any(text.startswith("fp16 tensor ") for text in roofs), roofs
    chrome.find_element(By.CSS_SELECTOR, "#rows th:nth-child(3)").click()
    chrome.find_element(By.CSS_SELECTOR, "#rows th:nth-child(3)").click()
    line = chrome.find_element(By.CSS_SELECTOR, "#rows tbody tr")
    Select(chrome.find_element(By.ID, "figure")).select_by_index(0)
    # A click on a row shows its kernels.
    assert not chrome.find_element(By.ID, "row").is_displayed()
    chrome.execute_script("arguments[0].click()", line)
    assert slowest["algorithm"] in chrome.find_element(By.ID, "facts").text
    kernels = post.kernels(data)
    kernels = kernels[kernels["config_hash"] == slowest["config_hash"]]
    lines = chrome.find_elements(By.CSS_SELECTOR, "#kernels tbody tr")
    assert len(lines) == len(kernels) and kernels["kernel_name"].iloc[0] in [one.text.split("\n")[0] for one in
        chrome.find_elements(By.CSS_SELECTOR, "#kernels tbody td:first-child")]  # fmt: skip
    # A symbol shows its row on hover.
    chrome.execute_script("document.getElementById('plot').scrollIntoView({block: 'center'})")
    points = chrome.find_elements(By.CSS_SELECTOR, "#plot .scatterlayer .trace path.point")
    shown = ""
    for point in points[:8]:  # another symbol may cover this one
        ActionChains(chrome).move_to_element(point).perform()
        shown = chrome.find_element(By.ID, "hover").text
        if "limiter" in shown:
            break
    assert "limiter" in shown and "algorithm" in shown and "AI" in shown, shown
    # Checks every figure with every colour.
    for select in ("figure", "colour"):
        for place in range(len(Select(chrome.find_element(By.ID, select)).options)):
            Select(chrome.find_element(By.ID, select)).select_by_index(place)
    chrome.find_element(By.ID, "reset").click()
    assert count(chrome) == len(table)
    quiet(chrome)


ROLES = {"button", "combobox", "img", "link", "listbox", "searchbox", "textbox"}  # roles that need a name
FAULTS = r"""const shine = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map((part) => (part / 255) ** 2.2)
  .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0.05);
const bare = matchMedia("(prefers-color-scheme: dark)").matches ? "rgb(0,0,0)" : "rgb(255,255,255)";
const below = (one, own = getComputedStyle(one || document.body).backgroundColor) => !/, 0\)$/.test(own) ? own
  : one ? below(one.parentElement) : bare;
const worded = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
const all = [...document.querySelectorAll("body *:not(script, #plot *, option, [aria-hidden], :disabled)")];
return all.filter((one) => {
  const [light, dark] = [getComputedStyle(one).color, below(one)].map(shine).sort((a, b) => b - a);
  return one.checkVisibility() && worded(one) && light / dark < 4.5;
}).map((one) => `contrast of ${one.outerHTML.slice(0, 80)}`)"""


def check_access(chrome):
    """Controls have names, texts have contrast in light and dark. axe-core 4.12, which this test does not run, found no
    fault."""
    for scheme in ("dark", "light"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        assert not (faults := chrome.execute_script(FAULTS)), (scheme, faults[:5])
    nodes = chrome.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    found = [(node["role"]["value"], node["name"]["value"].strip()) for node in nodes if "name" in node]
    nameless = [role for role, name in found if role in ROLES and not name]
    assert len(found) > 10 and not nameless, nameless


def check_roofs(chrome, roofs):
    """The report on a file without rows has a figure of the roofs, and a table of roofs that a click sorts."""
    drawn = chrome.execute_script("return document.getElementById('plot').data.map(d => d.x)")
    table = post.roofs(roofs)
    assert len(drawn) == 4 and sum(map(len, drawn)) == table["nominal_fraction"].notna().sum(), drawn
    assert not any(chrome.find_element(By.ID, name).is_displayed() for name in ("rows", "csv"))
    chrome.find_element(By.CSS_SELECTOR, "#roofs th:nth-child(5)").click()
    cells = [cell.text for cell in chrome.find_elements(By.CSS_SELECTOR, "#roofs td:nth-child(5)")]
    known = [float(cell.split()[0]) for cell in cells if cell != "-"]
    assert known == sorted(known) and cells[-1] == "-" and len(known) > 20, cells
    quiet(chrome)


def hostile(data):
    """Returns the file with texts that contain markup and scripts, which the page must show as text."""
    data = copy.deepcopy(data)
    data.attrs["title"] = HOSTILE
    for name in ("label", "algorithm", "configuration", "device_model", "device_hostname", "kernel_name", "pass"):
        data[name].values[:] = HOSTILE
    data["status"].values[:3], data["error"].values[:3] = "failed", HOSTILE
    return data


def check_hostile(chrome):
    assert chrome.find_element(By.ID, "title").text == HOSTILE.replace("  ", " ")
    assert chrome.title == HOSTILE, chrome.title
    assert not chrome.find_elements(By.CSS_SELECTOR, "img, #rows b, #plot b, header b"), "a text became HTML"
    assert HOSTILE in chrome.find_element(By.ID, "failures").text
    chrome.execute_script("document.querySelector('#rows tbody tr').click()")
    assert HOSTILE in chrome.find_element(By.ID, "kernels").text
    Select(chrome.find_element(By.ID, "colour")).select_by_index(0)
    quiet(chrome)


def many(data, rows):
    """Returns the file with `rows` rows, by repeating rows and their kernels."""
    times = -(-rows // data.sizes["config"])
    config, kernel = (np.tile(np.arange(data.sizes[name]), times) for name in ("config", "kernel"))
    found = data.isel(config=config[:rows], kernel=kernel)
    shift = np.repeat(np.arange(times), data.sizes["kernel"]) * data.sizes["config"]
    found["kernel_config"] = ("kernel", found["kernel_config"].values + shift)
    found = found.isel(kernel=np.flatnonzero(found["kernel_config"].values < rows))
    noise = np.random.default_rng(1)
    for name in ("time_median", "performance", "caller_time", "busy_time"):  # so that no two rows are equal
        found[name] = found[name] * (1 + 0.1 * noise.random(rows))
    shares = noise.random((rows, 3)) * 100
    text = "of the time: FLOPs at their roofs {:.1f} %, bytes at the roof of dram {:.1f} %, idle {:.1f} %"
    found["limiter_evidence"] = ("config", np.array([text.format(*own) for own in shares], dtype=object))
    found["kernel_time"] = found["kernel_time"] * (1 + 0.1 * noise.random(found.sizes["kernel"]))
    return found


def check_many(chrome, size, rows):
    assert size < 20e6, f"{size} bytes"
    assert count(chrome) == rows
    choose(chrome, "precision", ["fp32"])
    assert 0 < count(chrome) < rows
    chrome.execute_script("document.querySelector('#rows tbody tr').click()")
    assert chrome.find_elements(By.CSS_SELECTOR, "#kernels tbody tr")
    quiet(chrome)
    print(f"{rows} rows: {size / 1e6:.1f} MB")


def main():
    data = post.load(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        chrome = browser(folder)
        try:
            opened(chrome, folder, data)
            check_page(chrome, data)
            check_access(chrome)
            roofs = post.load(sys.argv[2])
            opened(chrome, folder, roofs)
            check_roofs(chrome, roofs)
            check_access(chrome)
            opened(chrome, folder, hostile(data))
            check_hostile(chrome)
            size = opened(chrome, folder, many(data, 100000))
            check_many(chrome, size, 100000)
        finally:
            chrome.quit()


main()
