"""Debian's headless Chromium, driven by selenium, on the report's page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
MISSING = "needs Debian's chromium and chromium-driver (apt-get install chromium chromium-driver)"


class Browser:
    """The page's controls by name; everything else is selenium's driver, under `driver`."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def wait(self, script: str, *, seconds: float = 60) -> Any:
        """Wait until a JavaScript expression is true, and return it."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, seconds, poll_frequency=0.02).until(
            lambda driver: driver.execute_script(f"return {script}")
        )

    def wait_ready(self) -> None:
        """Wait until the samples are listed."""
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def choose(self, control: str, value: str) -> None:
        """Choose an option of a select by its value."""
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support.ui import Select

        Select(self.driver.find_element(By.ID, control)).select_by_value(value)

    def sort_by(self, value: str) -> None:
        """Sort the samples, and wait until the list shows it."""
        self.choose("sort", value)
        self.wait("document.querySelector('#rows tr') !== null")

    def text(self, selector: str) -> str:
        """The text of the first element that matches."""
        return str(self.driver.execute_script(f"return document.querySelector({selector!r}).textContent"))

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that match."""
        script = f"return [...document.querySelectorAll({selector!r})].map((e) => e.textContent)"
        return [str(text) for text in self.driver.execute_script(script)]

    def click(self, selector: str) -> None:
        """Click the first element that matches."""
        self.driver.execute_script(f"document.querySelector({selector!r}).click()")


@contextmanager
def chromium(*, width: int = 1280, height: int = 900, dark: bool = False) -> Iterator[Browser]:
    """A headless browser for the length of the context."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    options.add_argument(f"--window-size={width},{height}")
    if dark:
        options.add_argument("--blink-settings=preferredColorScheme=0")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        # Headless windows have a least width; this has none.
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        scheme = "dark" if dark else "light"
        driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        yield Browser(driver)
    finally:
        driver.quit()
