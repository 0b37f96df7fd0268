"""Documents of turns as files that the session's code reads."""

import json
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from urllib.parse import unquote, urlsplit

from stint.documents.mime_types import choose, parse_mime_type
from stint.documents.served import DocumentData, Originals
from stint.domain.content import URL, Document, DocumentText
from stint.domain.limits import MAX_CODE_BYTES, MAX_CODE_FILES
from stint.services.turns.session_opener import OpenSession
from stint.store.session_files import StoredSessionFile
from stint.tools.code_interpreter.files import make_name

NOT_SHOWN = "This document has {characters:,} characters, which are not shown. Read its file with the code interpreter."
FOLDER = "The current folder of the code interpreter has these files of the user: {}."
EARLIER = "It also has these files of earlier messages: {}."
GONE = "These files of earlier messages are no longer there, because later ones need their place: {}."
TOO_LARGE = "These documents are not in the folder, because they are too many or too large: {}."


class CodeFiles:
    """The documents of one turn. The reader puts them into `originals`."""

    def __init__(self, session: OpenSession, documents: Sequence[Document]) -> None:
        self.session = session
        self.documents = documents
        self.originals = Originals(MAX_CODE_BYTES, MAX_CODE_FILES)

    def shorten(self, shown: Sequence[DocumentText], longest: int) -> list[DocumentText]:
        """Return the documents for the model: notes of long files, and nothing of those without a text.

        `shown` is empty if the model sees no documents.
        """
        kept, unread = self.originals.bodies, self.originals.errors
        return [
            note_of(text) if index in kept and len(text.text) > longest else text
            for index, text in enumerate(shown)
            if index not in unread
        ]

    async def store(self) -> DocumentText:
        """Store the documents as files of the session, and return a note that names all its files.

        The oldest files give way if they are too many or too large together. One that the session has is not stored
        again.

        Raises:
            Interrupted: the session was deleted, or taken over by another request.
            NotFound: the session was deleted.
            StoreUnavailable: the files could not be stored.
        """
        store, lease = self.session.store.session_files, self.session.keeper.lease
        earlier = await store.list(lease)
        names, added = self.name_files(earlier)
        kept, dropped = make_room(earlier, frozenset(names.values()), added)
        if added:
            await store.replace(lease, kept, added, dropped)
        return self.write_note(names, kept, dropped)

    def name_files(self, earlier: Sequence[StoredSessionFile]) -> tuple[dict[int, str], dict[str, bytes]]:
        """Return the names of the files of documents by the documents' indexes, and the new files."""
        known = {file.sha256: file.name for file in earlier}
        taken, names, added = [file.name for file in earlier], dict[int, str](), dict[str, bytes]()
        for index, raw in sorted(self.originals.bodies.items()):
            digest = sha256(raw.body).hexdigest()
            if digest not in known:
                known[digest] = name_document(self.documents[index], raw, index + 1, taken)
                taken.append(known[digest])
                added[known[digest]] = raw.body
            names[index] = known[digest]
        return names, added

    def write_note(
        self, names: dict[int, str], kept: Sequence[StoredSessionFile], dropped: Sequence[StoredSessionFile]
    ) -> DocumentText:
        """Return a note that names the files. It is a document, because callers and servers choose names."""
        places = dict[str, list[str]]()
        for index, name in names.items():
            unread = ", whose text is not shown" if index in self.originals.errors else ""
            places.setdefault(name, []).append(f"document {index + 1}{unread}")
        new = [f"{quote(name)} ({' and '.join(found)})" for name, found in places.items()]
        earlier = [quote(file.name) for file in kept if file.name not in places]
        gone = [quote(file.name) for file in dropped]
        missing = [f"document {index + 1}" for index in range(len(self.documents)) if index not in names]
        lists = ((FOLDER, new), (EARLIER, earlier), (GONE, gone), (TOO_LARGE, missing))
        return DocumentText(
            text=" ".join(text.format(", ".join(each)) for text, each in lists if each), mime_type="text/plain"
        )


def make_room(
    earlier: Sequence[StoredSessionFile], used: Collection[str], added: Mapping[str, bytes]
) -> tuple[list[StoredSessionFile], list[StoredSessionFile]]:
    """Return the earlier files that stay beside new ones, and those that do not. Those that are `used` stay first."""
    room, places = MAX_CODE_BYTES - sum(map(len, added.values())), MAX_CODE_FILES - len(added)
    kept = set[str]()
    newest_first = [*earlier][::-1]
    for file in sorted(newest_first, key=lambda file: file.name not in used):
        if places and file.bytes <= room:
            room, places = room - file.bytes, places - 1
            kept.add(file.name)
    return [file for file in earlier if file.name in kept], [file for file in earlier if file.name not in kept]


def name_document(document: Document, raw: DocumentData, number: int, taken: Sequence[str]) -> str:
    """Return a name for the file of a document: that in its URL, or its number in the turn."""
    uri = document.content.uri if isinstance(document.content, URL) else ""
    wanted = unquote(urlsplit(uri).path) if uri[:4].lower() == "http" else ""
    media_type = choose(parse_mime_type(document.mime_type), parse_mime_type(raw.content_type)).essence
    return make_name(wanted, f"document-{number}", media_type, taken)


def note_of(document: DocumentText) -> DocumentText:
    """Return the note in the place of a long document."""
    return DocumentText(text=NOT_SHOWN.format(characters=len(document.text)), mime_type=document.mime_type)


def quote(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
