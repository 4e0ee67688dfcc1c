# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""tools/release_notes: what it prints, and what it finds not ready."""

import runpy
from pathlib import Path

import pytest

MAIN = runpy.run_path(str(Path(__file__).parents[2] / "tools/release_notes"))["main"]
FILES = {
    "CMakeLists.txt": "set(development)  # empty\nproject(boxloss VERSION 1.2.0 LANGUAGES CXX)\n",
    "CITATION.cff": "cff-version: 1.1.0\nversion: 1.2.0\ndate-released: 2030-01-02\n",
    "CHANGELOG.md": """\
# Changes

## 1.2.0 - 2030-01-02

### New

- One ([a
  page](docs/a.md#b)), and
  another.
  - Nested.
- [Two](https://host/x).

## 1.1.0 - 2029-01-02

- Old.
""",
}
NOTES = """\
### New

- One ([a page](U/docs/a.md#b)), and another.
  - Nested.
- [Two](https://host/x).
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_notes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    MAIN("v1.2.0", "U")
    assert capsys.readouterr().out == NOTES
    with pytest.raises(SystemExit, match=r"the tag has 1\.3\.0, CMakeLists\.txt has 1\.2\.0,"):
        MAIN("v1.3.0", "U")


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("CMakeLists.txt", "development", "development .dev0", "CMakeLists.txt has 1.2.0.dev0"),
        ("CITATION.cff", "\nversion: 1.2.0", "\nversion: 1.1.0", "CITATION.cff has 1.1.0"),
        ("CITATION.cff", "2030-01-02", "2030-01-01", "dates differ: CITATION.cff has 2030-01-01"),
        ("CHANGELOG.md", "1.2.0 - 2030-01-02", "Unreleased", "CHANGELOG.md has Unreleased"),
        ("CHANGELOG.md", " - 2030-01-02", "", "dates differ: .* CHANGELOG.md has 1.2.0"),
    ],
)
def test_what_is_not_ready(folder: Path, file: str, old: str, new: str, told: str) -> None:
    (folder / file).write_text(FILES[file].replace(old, new, 1))
    with pytest.raises(SystemExit, match=told):
        MAIN("v1.2.0", "U")
