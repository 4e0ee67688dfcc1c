# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A file of an earlier run is used where it fits, and replaced out loud where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("rich")

from rich.console import Console

from benchmarks.common.output import write_json
from benchmarks.common.resume import earlier, is_kept

CONDITIONS = {"machine": {"gpu": "one"}, "settings": {"sizes": (1, 2)}}


def test_what_was_measured_under_the_same_conditions_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "figures.json"
    write_json(path, CONDITIONS | {"rows": [1]})
    written = earlier(path)
    assert written["rows"] == [1]
    assert is_kept(written, CONDITIONS, "figures", Console())
    assert capsys.readouterr().out == ""
    assert not is_kept(written, CONDITIONS | {"machine": {"gpu": "two"}}, "figures", Console())
    assert "figures: the file's is of another machine" in capsys.readouterr().out


def test_without_a_file_there_is_nothing_to_keep_and_nothing_to_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (None, tmp_path / "none.json"):
        assert not is_kept(earlier(path), CONDITIONS, "figures", Console())
    assert capsys.readouterr().out == ""


def test_who_is_stopped_while_writing_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "figures.json"
    write_json(path, {"rows": [1]})

    def stopped(self: Path, text: str) -> None:
        with self.open("w") as file:
            file.write(text[:3])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_json(path, {"rows": [1, 2]})
    assert earlier(path) == {"rows": [1]}
