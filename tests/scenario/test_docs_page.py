"""The documentation page in a real browser: it works, and it asks nobody but us."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.scenario.program import Program, dispatcher
from tests.services.environment import is_ci

OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        (pytest.fail if is_ci() else pytest.skip)("no Chromium; on Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield found
        found.close()


def test_the_page_shows_every_route_and_loads_nothing_from_outside(browser: Browser, tmp_path: Path) -> None:
    variables = {"DISPATCHER_DATA_DIR": str(tmp_path / "data"), "DISPATCHER_ENCODER__NAME": "hashing"}
    with Program(*dispatcher("run", "--development", "--port", "0"), variables=variables) as server:
        url = server.wait_for(r"listening on (http://\S+)")[1]
        page = browser.new_page()
        asked: list[str] = []
        wrong: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))

        page.goto(f"{url}/docs")
        page.get_by_text("/v1/chat").first.wait_for()

        assert {urlsplit(one).netloc for one in asked if not one.startswith("data:")} == {
            urlsplit(url).netloc
        }
        assert wrong == []
        assert page.get_by_text("/v1/agents/{agent_id}/heartbeat").count() == 1
