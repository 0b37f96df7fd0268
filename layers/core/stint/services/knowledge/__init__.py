"""Files, vector stores, retrieval and embeddings."""
