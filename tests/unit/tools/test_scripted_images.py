"""The images of the scripted image model."""

import pytest
from tests.servers.images import read_png

from stint.domain.errors import InvalidRequest
from stint.tools.image_generation.port import ImageOptions
from stint.tools.image_generation.scripted import ScriptedImages, draw

DOTS_OF_H = ["10001", "10001", "10001", "11111", "10001", "10001", "10001"]


async def test_the_image_is_a_png_that_shows_the_prompt() -> None:
    image = await ScriptedImages().generate("drawing", "H", ImageOptions())

    picture = read_png(image.data)
    assert (picture.width, picture.height, image.media_type) == (512, 512, "image/png")
    inked = [row for row in picture.rows if "1" in row]
    left, right = min(row.index("1") for row in inked), max(row.rindex("1") for row in inked)
    scale = (right - left + 1) // 5
    shown = ["".join(row[left + scale * dot] for dot in range(5)) for row in inked[::scale]]
    assert shown == DOTS_OF_H


def test_the_same_prompt_gets_the_same_image_and_another_one_another() -> None:
    size = (100, 100)

    assert draw("a fox", size) == draw("a fox", size) != draw("a dog", size)
    assert read_png(draw("a fox", size)).palette != read_png(draw("a dog", size)).palette


@pytest.mark.parametrize("size", [(10, 10), (11, 300), (2048, 16), (2048, 2048)])
def test_every_size_is_drawn_whatever_the_prompt(size: tuple[int, int]) -> None:
    picture = read_png(draw("Ünïcödé and words " * 2_000, size))

    assert (picture.width, picture.height) == size
    assert picture.black


async def test_options_have_an_effect_or_are_refused() -> None:
    options = ImageOptions.of({"size": "64x32", "background": "transparent", "quality": "high"})

    picture = read_png((await ScriptedImages().generate("drawing", "a fox", options)).data)

    assert (picture.width, picture.height, picture.transparent) == (64, 32, True)
    with pytest.raises(InvalidRequest, match="does not support output_format 'webp'"):
        ScriptedImages().check("drawing", ImageOptions(output_format="webp"))
