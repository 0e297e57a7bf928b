"""Whether a page fits a width, in headless Chromium; for tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

CHROMIUM = shutil.which("chromium")


def fits(page: Path, width: int) -> bool:
    """Whether nothing of the page lies beside a window of that width (in CSS pixels)."""
    # A window of Chromium's is never narrower than 500; a frame is what it is said to be.
    frame = page.with_name("frame.html")
    frame.write_text(
        f'<iframe src="{page.name}" width="{width}" height="900" style="border:0"></iframe>'
        "<script>addEventListener('load', () => {const d = frames[0].document.documentElement;"
        " document.body.append(`FITS ${d.scrollWidth <= d.clientWidth} at ${frames[0].innerWidth}`)})</script>"
    )
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    dom = subprocess.run(
        [*command, "--virtual-time-budget=4000", "--dump-dom", frame.as_uri()],
        capture_output=True,
        text=True,
        timeout=1800,
    ).stdout
    return f"FITS true at {width}" in dom
