"""Remove one protection at a time from a copy of the source, and check that a test fails: `make test-mutations`."""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = "layers/core/stint"
COPIED = ("docs", "events", "functions", "infra", "layers", "tests", "requirements")
LINKED = (".venv", ".venv-ministack")
FILES = ("pyproject.toml", "template.yaml", "Makefile")
SURVIVED, CAUGHT, BROKEN = "SURVIVED", "caught", "BROKEN"


@dataclass(frozen=True)
class Mutation:
    """A protection, the text that is its code, the text without it, and the tests that must fail."""

    protection: str
    file: str
    code: str
    mutated: str
    tests: str


MUTATIONS = [
    Mutation(
        "a request without a principal is 401",
        f"{CORE}/http/middleware/authentication.py",
        "        raise Unauthenticated(UNAUTHENTICATED) from None",
        "        return ANONYMOUS",
        "test_forged_callers.py -k gateway",
    ),
    Mutation(
        "each route needs its scope",
        f"{CORE}/http/scopes.py",
        "    require_scope(needed)\n",
        "",
        "test_route_walk.py -k scope",
    ),
    Mutation(
        "the tenant leads the keys of records",
        f"{CORE}/store/keys.py",
        'return f"{checked_tenant(tenant)}#',
        'return f"shared#',
        "test_rights.py -k another_tenant",
    ),
    Mutation(
        "credentials are masked in answers",
        f"{CORE}/tools/masking.py",
        "    return Masker().value(value)",
        "    return value",
        "test_marked_secrets.py",
    ),
    Mutation(
        "the secret of a key is compared",
        f"{CORE}/domain/api_keys.py",
        "current = hmac.compare_digest(sent, self.secret_hash)",
        "current = True",
        "test_route_walk.py -k secret",
    ),
    Mutation(
        "a key expires",
        f"{CORE}/domain/api_keys.py",
        "(expires_at is None or now < expires_at)",
        "True",
        "test_route_walk.py -k expired",
    ),
    Mutation(
        "a key can be revoked",
        f"{CORE}/domain/api_keys.py",
        "return self.resource.revoked_at is None and",
        "return",
        "test_route_walk.py -k revoked",
    ),
    Mutation(
        "URLs do not lead inside",
        f"{CORE}/net/guard.py",
        "        if kind and not self._allowed.admits(",
        "        if kind and False and not self._allowed.admits(",
        "test_url_tricks.py -k turn_document",
    ),
    Mutation(
        "redirects do not lead inside",
        f"{CORE}/net/transport.py",
        "        for address in await self._find(host, port):",
        "        for address in [host]:",
        "test_url_tricks.py -k redirect",
    ),
    Mutation(
        "the policy is for the whole stage, because it is cached",
        "functions/authorizer/app.py",
        'return policy("Allow", stage,',
        'return policy("Allow", event["methodArn"],',
        "test_route_walk.py -k scope",
    ),
    Mutation(
        "a key is limited to its models",
        f"{CORE}/domain/principals.py",
        "return matches_model(self.models, model_id)",
        "return True",
        "test_rights.py -k model",
    ),
    Mutation(
        "an admin manages keys of its own tenant",
        f"{CORE}/services/access/key_administration.py",
        "return None if self._is_operator(caller) else caller.tenant",
        "return None",
        "test_rights.py -k admin_manages",
    ),
    Mutation(
        "a key has no more rights than its creator",
        f"{CORE}/services/access/key_administration.py",
        "        if not self._is_operator(caller):\n            refuse_excess",
        "        if False:\n            refuse_excess",
        "test_rights.py -k more_rights",
    ),
]


def make_copy(folder: Path) -> None:
    """Copy the tracked files that tests need into a folder."""
    listed = subprocess.run(["git", "ls-files", *COPIED, *FILES], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)


def apply(mutation: Mutation, folder: Path) -> str:
    """Remove a protection, and return the original source."""
    path = folder / mutation.file
    source = path.read_text()
    if mutation.code not in source:
        raise ValueError(f"{mutation.file} does not contain {mutation.code!r}. Change the mutation, too.")
    path.write_text(source.replace(mutation.code, mutation.mutated))
    return source


def run_tests(folder: Path, tests: str) -> int:
    """Return pytest's exit code: 1 if tests failed."""
    file, *options = tests.split()
    command = [str(ROOT / ".venv/bin/pytest"), "-q", "-n", "0", "-x", "--show-capture=no", f"tests/security/{file}"]
    environment = {**os.environ, "PYTHONPATH": f"{folder}/layers/core:{folder}/layers/runtime/python:{folder}"}
    done = subprocess.run([*command, *options], cwd=folder, env=environment, capture_output=True, check=False)
    return done.returncode


def judge(mutation: Mutation, folder: Path) -> str:
    """Return whether a test fails without the protection."""
    source = apply(mutation, folder)
    try:
        code = run_tests(folder, mutation.tests)
    finally:
        (folder / mutation.file).write_text(source)
    return {0: SURVIVED, 1: CAUGHT}.get(code, BROKEN)


def main(words: list[str]) -> int:
    """Run the mutations whose protection contains one of the words, by default all."""
    chosen = [each for each in MUTATIONS if not words or any(word in each.protection for word in words)]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="stint-mutations-") as name:
        make_copy(Path(name))
        for mutation in chosen:
            outcomes.append(judge(mutation, Path(name)))
            print(f"{outcomes[-1]:9} {mutation.protection}: {mutation.tests}", flush=True)
    caught = outcomes.count(CAUGHT)
    print(f"mutations: {caught} of {len(chosen)} caught")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
