"""Files and uploads by the `openai` package, through a real gateway and function processes."""

from hashlib import md5
from random import Random

import pytest
from openai import APIStatusError, BadRequestError, NotFoundError, OpenAI

EVERY_BYTE = bytes(range(256)) * 1_000
LARGE = Random(11).randbytes(9_000_000)


def test_every_byte_of_a_file_survives_the_way_to_the_function_and_back(openai_client: OpenAI) -> None:
    file = openai_client.files.create(file=("bytes.bin", EVERY_BYTE), purpose="user_data")

    assert openai_client.files.retrieve(file.id) == file
    assert (file.bytes, file.filename) == (len(EVERY_BYTE), "bytes.bin")
    assert openai_client.files.content(file.id).read() == EVERY_BYTE
    assert file in openai_client.files.list(purpose="user_data", limit=5).data


def test_a_file_of_4_mb_fits_into_one_request(openai_client: OpenAI) -> None:
    file = openai_client.files.create(file=("large.bin", LARGE[:4_400_000]), purpose="assistants")

    assert openai_client.files.content(file.id).read() == LARGE[:4_400_000]


@pytest.mark.parametrize("size", [4_400_001, 4_800_000, 9_000_000])
def test_a_larger_file_is_refused_and_the_error_names_the_way(openai_client: OpenAI, size: int) -> None:
    with pytest.raises(APIStatusError) as refused:
        openai_client.with_options(max_retries=0).files.create(file=("a.bin", LARGE[:size]), purpose="assistants")

    assert refused.value.status_code == 413
    assert refused.value.code == "too_large"
    assert "/v1/uploads" in refused.value.message


def test_a_large_file_is_uploaded_in_parts(openai_client: OpenAI) -> None:
    upload = openai_client.uploads.upload_file_chunked(
        file=LARGE,
        filename="large.bin",
        bytes=len(LARGE),
        mime_type="application/octet-stream",
        purpose="assistants",
        part_size=4_000_000,
        md5=md5(LARGE, usedforsecurity=False).hexdigest(),
    )

    assert upload.file
    assert openai_client.files.content(upload.file.id).read() == LARGE
    openai_client.files.delete(upload.file.id)
    with pytest.raises(NotFoundError):
        openai_client.files.retrieve(upload.file.id)


def test_parts_of_the_clients_default_size_are_refused_and_the_error_names_part_size(openai_client: OpenAI) -> None:
    with pytest.raises(APIStatusError, match="part_size") as refused:
        openai_client.with_options(max_retries=0).uploads.upload_file_chunked(
            file=LARGE,
            filename="large.bin",
            bytes=len(LARGE),
            mime_type="application/octet-stream",
            purpose="assistants",
        )

    assert refused.value.status_code == 413


def test_an_empty_file_is_refused(openai_client: OpenAI) -> None:
    with pytest.raises(BadRequestError, match="empty"):
        openai_client.files.create(file=("empty.txt", b""), purpose="assistants")
