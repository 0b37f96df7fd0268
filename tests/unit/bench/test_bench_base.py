"""The tree of another commit, for `make bench BASE=<commit>`."""

import subprocess
import sys
from pathlib import Path

import pytest
from infra.bench import base
from infra.bench.base import base_tree, environment, resolve
from infra.local.errors import LocalCloudError


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with one commit, whose lock files name no packages, and a tag."""
    root = tmp_path / "repository"
    (root / "requirements").mkdir(parents=True)
    for name in (base.DEVELOPMENT, base.ENGINE):
        (root / name).write_text("# none\n")
    author = ["-c", "user.name=n", "-c", "user.email=n@example.com", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "first"], ["tag", "first"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    monkeypatch.setattr(base, "ROOT", root)
    return root


def worktrees(root: Path) -> int:
    listed = subprocess.check_output(["git", "worktree", "list", "--porcelain"], cwd=root, text=True)
    return listed.count("worktree ")


@pytest.mark.parametrize("commit", ["nonsense", "", "0000000", "--help", "HEAD:requirements"])
def test_an_unknown_commit_is_an_error_that_names_it(repository: Path, commit: str) -> None:
    with pytest.raises(LocalCloudError, match="which is no commit of this repository") as caught:
        resolve(commit)

    assert str(caught.value).startswith(f"BASE is {commit!r}")


def test_the_worktree_is_removed_at_the_end(repository: Path) -> None:
    (repository / "new").write_text("not committed")

    with base_tree("first") as tree:
        inside = worktrees(repository)
        files = {path.name for path in tree.root.iterdir()}
        python = tree.python

    assert files == {".git", ".venv-ministack", "requirements"}
    assert python == Path(sys.executable)
    assert not tree.root.exists()
    assert (inside, worktrees(repository)) == (2, 1)


def test_the_worktree_is_removed_after_a_failure(repository: Path) -> None:
    with pytest.raises(KeyboardInterrupt), base_tree("HEAD") as tree:
        raise KeyboardInterrupt

    assert not tree.root.exists()
    assert worktrees(repository) == 1


def test_other_requirements_get_an_environment_of_their_own(repository: Path, tmp_path: Path) -> None:
    (repository / base.DEVELOPMENT).write_text("# more since then\n")

    with base_tree("first") as tree:
        found = subprocess.check_output([tree.python, "-c", "import sys; print(sys.prefix)"], text=True).strip()

    assert Path(found).name == "venv"
    assert Path(found) != Path(sys.prefix)


def test_an_installation_that_fails_is_an_error(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "requirements").mkdir(parents=True)
    (other / base.DEVELOPMENT).write_text("./no-such-folder\n")

    with pytest.raises(LocalCloudError, match="failed: "):
        environment(other, base.DEVELOPMENT, tmp_path / "venv", Path(sys.executable))
