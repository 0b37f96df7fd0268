"""The function of files, containers, vector stores, retrieval and embeddings.

It streams, so it runs on the streaming runtime.
"""

from stint.bootstrap.knowledge import KnowledgeComposition
from stint.bootstrap.restore import start
from stint.http.app import create_app
from stint.http.requests import LazyRouter
from stint.http.routes import files, uploads, vector_dbs, vector_stores
from stint.settings import load_settings

composition = KnowledgeComposition(load_settings)
start(composition)
app = create_app(
    "knowledge",
    files.router,
    uploads.router,
    vector_stores.router,
    vector_dbs.router,
    LazyRouter("stint.http.routes.containers", "/v1/containers"),
    LazyRouter("stint.http.routes.embeddings", "/v1/embeddings", "/v1/inference/embeddings"),
    make_services=composition.make_knowledge_services,
    read_settings=load_settings,
    buffered=False,
)
