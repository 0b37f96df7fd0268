"""A vector index in blocks of a bucket, searched with numpy.

A store's chunks are in immutable objects, its blocks. Its manifest lists them, the oldest first, and is replaced only
if its ETag is still the one that was read, so that concurrent writers lose nothing. A newer block's rows and deleted
keys hide the rows of older ones with the same key.

  a block is    its object   in the manifest   becomes
  being written exists       no                used, by a compare and swap; or abandoned, if its writer dies
  used          exists       yes               replaced, when a merge or a deletion has written others for its rows
  replaced      exists       no                deleted, by whoever replaced it or as an abandoned one
  abandoned     exists       no                deleted, 900 s after its name was made

Only its age tells a block that is being written from an abandoned one, and its name begins with the time. A writer
gives up after 600 s, so 300 s are left for clocks that differ (`unused.py`).

A row is in one of three states: visible; hidden, by a newer row or a deletion of the same key; or purged, when the
block that had it was rewritten. A deletion hides all its rows with one write, and then purges them, so a search never
finds a part of them, and a deletion that was stopped is finished by its repetition.

A search reads a manifest and then its blocks. If a block was replaced meanwhile, its object may be missing; the search
begins again with the new manifest.

docs/decisions.md, entry 83, has the reasons.
"""
