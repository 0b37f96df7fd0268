"""Files that code writes in a session, for its later calls."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from stint.domain.limits import MAX_CODE_BYTES, MAX_CODE_FILES
from stint.store.session_files import SessionFiles, StoredSessionFile
from stint.store.session_leases import SessionLease
from stint.tools.code_interpreter.files import is_file_name


async def keep_outputs(
    store: SessionFiles, lease: SessionLease, written: Mapping[str, bytes], removed: Sequence[str]
) -> list[str]:
    """Store the files of a run with those of its session, and return the names of those that do not fit.

    One with the name of an earlier file replaces it, also one of the user's. Nothing is stored if nothing changed.

    Raises:
        Interrupted: the session was deleted, or taken over by another request.
        NotFound: the session was deleted.
        StoreUnavailable: the files could not be stored.
    """
    earlier = await store.list(lease)
    added, omitted = choose_outputs([file for file in earlier if file.name not in removed], written)
    dropped = [file for file in earlier if file.name in added or file.name in removed]
    if added or dropped:
        await store.replace(lease, [file for file in earlier if file not in dropped], added, dropped)
    return omitted


def choose_outputs(
    earlier: Sequence[StoredSessionFile], written: Mapping[str, bytes]
) -> tuple[dict[str, bytes], list[str]]:
    """Return the files to store, and the names of those that do not fit beside the others. Their old contents stay."""
    sizes, known = {file.name: file.bytes for file in earlier}, {file.name: file.sha256 for file in earlier}
    added, omitted = dict[str, bytes](), list[str]()
    for name, content in written.items():
        others = sum(sizes.values()) - sizes.get(name, 0)
        if known.get(name) == sha256(content).hexdigest():
            continue
        if not is_file_name(name) or others + len(content) > MAX_CODE_BYTES or len({*sizes, name}) > MAX_CODE_FILES:
            omitted.append(name)
        else:
            sizes[name], added[name] = len(content), content
    return added, omitted
