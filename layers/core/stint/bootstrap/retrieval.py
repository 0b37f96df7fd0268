"""Composition of the vector index. Only the functions that search or write vector stores load this module."""

from functools import partial

from stint.aws.credentials import CredentialsSource
from stint.retrieval.port import VectorIndex
from stint.settings import Settings
from stint.store.clients import make_bucket
from stint.store.objects import BucketObjects


def make_vector_index(settings: Settings, credentials: CredentialsSource | None = None) -> VectorIndex:
    """Return the vector index that the settings name. A process needs one, since it has the memory for its blocks."""
    indexes = {name: make_index(name, settings, credentials) for name in settings.vector_indexes}
    if len(indexes) == 1:
        return indexes[settings.vector_index]
    from stint.retrieval.routed import RoutedIndex  # noqa: PLC0415 - few stacks have two

    return RoutedIndex(indexes, settings.vector_index)


def make_index(name: str, settings: Settings, credentials: CredentialsSource | None) -> VectorIndex:
    objects = BucketObjects(make_bucket(settings.bucket, credentials))
    if name == "s3-vectors":
        from stint.retrieval.s3_vectors.client import VectorBucket, connect  # noqa: PLC0415 - one of the two is used
        from stint.retrieval.s3_vectors.index import S3VectorsIndex  # noqa: PLC0415 - see above

        return S3VectorsIndex(VectorBucket(settings.vector_bucket, partial(connect, credentials)), objects)
    # Only the packed index needs numpy.
    from stint.retrieval.packed.index import PackedIndex  # noqa: PLC0415

    return PackedIndex(objects, settings.packed_bytes)
