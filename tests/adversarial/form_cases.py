"""Forms with many parts, long headers, and contents that look like boundaries."""

from tests.adversarial.case import Case, Request, case

MOST = 4_400_000
FORM_PURPOSE = b'--%(b)s\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nassistants\r\n'
FORM_FILE = b'--%(b)s\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n%(content)s\r\n--%(b)s--\r\n'


def send(body: bytes, boundary: bytes = b"x" * 60) -> Request:
    headers = {"content-type": f"multipart/form-data; boundary={boundary.decode()}"}
    return Request("POST", "/v1/files", body, headers)


def with_content(content: bytes, boundary: bytes = b"x" * 60) -> Request:
    parts = {b"b": boundary, b"content": content}
    return send((FORM_PURPOSE + FORM_FILE) % parts, boundary)


@case
def contents_like_boundaries() -> Case:
    near = b"\r\n--" + b"x" * 59
    for content in (b"\r", b"\r\n", b"\r\n-", b"\r\n--", near, near + b"\r\n", b"-", b"x"):
        answer = yield with_content((content * (MOST // len(content)))[: MOST - 1_000])
        assert answer.status == 200, answer.body[:500]


@case
def boundaries_that_are_long_or_repeat() -> Case:
    for boundary in (b"-" * 70, b"x" * 4_000, b"ab" * 1_000):
        answer = yield with_content(boundary[:-1] * (MOST // len(boundary)), boundary)
        assert answer.status in (200, 400, 415), answer.body[:500]


@case
def forms_of_many_parts() -> Case:
    part = b'--x\r\nContent-Disposition: form-data; name="f"\r\n\r\na\r\n'
    for body in (part * 100_000, b"--x\r\n" * 1_000_000, b"--x\r\n\r\n\r\n" * 500_000):
        answer = yield send(body, b"x")
        assert answer.status == 400, answer.body[:500]


@case
def long_headers_of_parts() -> Case:
    starts = (b"a", b'Content-Disposition: form-data; name="', b"Content-Disposition: form-data" + b"; a=b" * 700)
    for start in starts:
        for header in (start + b"a" * 5_000_000, b"a: b\r\n" * 900_000, start + b'\\"' * 1_900, start + b";" * 3_000):
            answer = yield send(b"--x\r\n" + header + b"\r\n\r\ncontent\r\n--x--\r\n", b"x")
            assert answer.status == 400, answer.body[:500]


@case
def long_content_types() -> Case:
    for kind in ("multipart/form-data" + "; a=b" * 100_000, 'multipart/form-data; boundary="' + '\\"' * 100_000):
        answer = yield Request("POST", "/v1/files", b"--x", {"content-type": kind})
        assert answer.status in (400, 413, 415), answer.body[:500]
