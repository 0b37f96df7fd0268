"""A vector index in Amazon S3 Vectors, one per vector store."""
