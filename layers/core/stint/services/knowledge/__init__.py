"""Files, containers, vector stores, retrieval and embeddings.

A document of a vector store is a record, a content and chunks. A request writes the record and sends a task; the worker
reads the content and writes the chunks (`ingestion.py`). The record decides what searches find.

  status        lease   searches find          becomes
  in_progress   free    the generation before  held, by a worker with a task; cancelled; failed, after 3 lost tasks
  in_progress   held    the generation before  completed; failed; paused, with its progress; cancelled, by a request
  completed     free    its generation         in_progress, if it is inserted again with other settings
  completed     held    its generation         an update of its attributes is being written to the index
  failed        free    the generation before  in_progress, if it is inserted again
  cancelled     free    the generation before  in_progress, if it is inserted again
  deleted       any     nothing                no record, when no lease is held and the chunks are deleted

The generation before is that of the last completion, if there was one. A lease that its holder does not renew lapses,
and counts as free.
"""
