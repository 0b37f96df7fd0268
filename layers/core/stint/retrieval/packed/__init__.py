"""A vector index in blocks of a bucket, searched with numpy.

A store's chunks are in immutable objects, its blocks. Its manifest lists them, the oldest first, and is replaced only
if its ETag is still the one that was read, so that concurrent writers lose nothing. A newer block's rows and deleted
keys hide the rows of older ones with the same key.
"""
