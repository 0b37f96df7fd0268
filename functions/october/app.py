"""The function of the API of October 2024. It streams, so it runs on the streaming runtime."""

from stint.bootstrap.restore import start
from stint.http.app import create_app
from stint.october_2024.composition import OctoberComposition
from stint.october_2024.routes.parts import list_october_parts
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
