"""The function of the API of October 2024. It streams, so it runs on the streaming runtime."""

from stint.bootstrap.october import OctoberComposition
from stint.bootstrap.restore import start
from stint.http.app import create_app
from stint.http.routes.october_2024_parts import list_october_parts
from stint.settings import load_settings

composition = OctoberComposition(load_settings)
start(composition)
app = create_app(
    "october",
    *list_october_parts(),
    make_services=composition.make_october_services,
    read_settings=load_settings,
    buffered=False,
)
