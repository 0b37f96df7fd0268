"""Composition of the vector index. Only the functions that search or write vector stores load this module."""

from stint.retrieval.port import VectorIndex
from stint.settings import Settings
from stint.store.clients import make_s3
from stint.store.objects import BucketObjects


def make_vector_index(settings: Settings) -> VectorIndex:
    """Return the vector index that the settings name. A process needs one, since it has the memory for its blocks."""
    # Only the packed index needs numpy.
    from stint.retrieval.packed.index import PackedIndex  # noqa: PLC0415

    return PackedIndex(BucketObjects(make_s3, settings.bucket), settings.packed_bytes)
