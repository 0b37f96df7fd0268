"""Samples are chosen by the commit, and by the files that changed."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commit import base_commit, changed_files, commit_number

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Return a function that runs git in an empty repository."""
    monkeypatch.delenv("BASE", raising=False)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> str:
        options = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *options, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    run("init", "--quiet", "--initial-branch", "main")
    return run


def commit(git: Git, folder: Path, name: str) -> str:
    """Commit a new file, and return the commit."""
    (folder / name).write_text(name)
    git("add", name)
    git("commit", "--quiet", "--message", name)
    return git("rev-parse", "HEAD")


def test_the_number_is_that_of_the_commit(git: Git, tmp_path: Path) -> None:
    assert commit_number(tmp_path) == 0
    commit_number.cache_clear()
    head = commit(git, tmp_path, "first")

    assert commit_number(tmp_path) == int(head[:8], 16)


def test_without_history_nothing_is_known(git: Git, tmp_path: Path) -> None:
    commit(git, tmp_path, "first")

    assert base_commit(tmp_path) is None
    assert changed_files(None, tmp_path) is None


def test_the_main_branch_is_compared_with_its_parent(git: Git, tmp_path: Path) -> None:
    first = commit(git, tmp_path, "first")
    commit(git, tmp_path, "second")
    (tmp_path / "third").write_text("")

    assert base_commit(tmp_path) == first
    assert changed_files(first, tmp_path) == {"second", "third"}


def test_a_branch_is_compared_with_where_it_began(git: Git, tmp_path: Path) -> None:
    first = commit(git, tmp_path, "first")
    git("checkout", "--quiet", "-b", "branch")
    commit(git, tmp_path, "second")
    commit(git, tmp_path, "third")

    assert base_commit(tmp_path) == first
    assert changed_files(first, tmp_path) == {"second", "third"}


def test_a_base_can_be_chosen(git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(git, tmp_path, "first")
    second = commit(git, tmp_path, "second")
    commit(git, tmp_path, "third")
    monkeypatch.setenv("BASE", second[:12])

    assert base_commit(tmp_path) == second
    monkeypatch.setenv("BASE", "nothing")
    assert base_commit(tmp_path) is None
