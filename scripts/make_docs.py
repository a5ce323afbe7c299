"""Writes the pages of docs/ that are made from the code; `make docs` calls it."""

from pathlib import Path

from scripts.reference.api_page import api_page
from scripts.reference.metrics_page import metrics_page
from scripts.reference.policies_page import policies_page

ROOT = Path(__file__).parents[1]
#: Each page by its path, with the function that makes it.
PAGES = {
    "docs/api.md": api_page,
    "docs/metrics.md": metrics_page,
    "docs/policies.md": policies_page,
}


def main() -> None:
    """Write every page."""
    for path, make in PAGES.items():
        (ROOT / path).write_text(make(), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
