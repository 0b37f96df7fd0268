"""One runtime process with many events at once, as on Lambda Managed Instances."""

import json
import signal

import pytest
from tests.runtime.harness import Start, proxy_event, split, until
from tests.runtime.many import many


async def test_streams_interleave_in_one_process() -> None:
    async with many(2) as runtime:
        slow, slow_gate = await runtime.start("/two")
        await slow_gate.reached("between")
        fast, fast_gate = await runtime.start("/two")
        await fast_gate.open("between")
        whole = await fast.read()
        between = slow.ended
        await slow_gate.open("between")

        assert split(whole)[1] == split(await slow.read())[1] == b"one two"
        assert not between
        assert fast.error is slow.error is None
        await runtime.polls(2)


async def test_64_streams_are_open_at_once() -> None:
    async with many(64) as runtime:
        streams = [await runtime.start("/two") for _ in range(64)]
        for _, gate in streams:
            await gate.reached("between")
        waiting = runtime.api.polls
        for _, gate in reversed(streams):
            await gate.open("between")

        assert waiting == 0
        assert {split(await stream.read())[1] for stream, _ in streams} == {b"one two"}
        await runtime.polls(64)


async def test_short_invocations_pass_a_long_one() -> None:
    async with many(2) as runtime:
        long, gate = await runtime.start("/two")
        await gate.reached("between")
        for _ in range(20):
            short, _ = await runtime.start("/cookies")
            assert split(await short.read())[1] == b"\x00\xff"
            await runtime.polls(1)
        await gate.open("between")

        assert split(await long.read())[1] == b"one two"


async def test_each_invocation_has_its_own_ids() -> None:
    async with many(3) as runtime:
        streams = [await runtime.start("/seen") for _ in range(3)]
        for _, gate in streams:
            await gate.reached("before")
        for _, gate in reversed(streams):
            await gate.open("before")
        found = [json.loads(split(await stream.read())[1]) for stream, _ in streams]

    assert [each["request_id"] for each in found] == [stream.request_id for stream, _ in streams]
    assert len({each["trace"] for each in found}) == 3
    for each in found:
        assert each["trace"].startswith("Root=1-")
        assert each["trace"].endswith(f"{each['request_id'].replace('-', '')[:24]};Sampled=0")
        assert each["current"] == [each["request_id"]] * 2
        assert each["environment"] is None
    assert len({each["pid"] for each in found}) == 1


async def test_the_threads_suffice_for_all_invocations() -> None:
    async with many(40) as runtime:
        met = [(await runtime.start("/threads/40"))[0] for _ in range(40)]

        assert [split(await each.read())[1] for each in met] == [b"met"] * 40


async def test_an_app_that_ignores_its_deadline_ends_the_process_after_the_other_streams() -> None:
    async with many(2, timeout=1.5) as runtime:
        stubborn, _ = await runtime.start("/stubborn")
        await stubborn.begun.wait()
        runtime.timeout = 60
        other, gate = await runtime.start("/two")
        await stubborn.read()
        await until(lambda: runtime.api.running == 0)
        running = runtime.process.returncode is None
        await gate.open("between")

        assert stubborn.error
        assert stubborn.error.type == "DeadlineExceeded"
        assert running
        assert split(await other.read())[1] == b"one two"
        assert other.error is None
        assert await runtime.exit() == 1


async def test_the_others_end_at_their_own_deadlines_while_the_process_ends() -> None:
    async with many(2, timeout=2) as runtime:
        hanging, _ = await runtime.start("/hang-later")
        await hanging.begun.wait()
        leaving, _ = await runtime.start("/leave")

        await leaving.read()
        assert split(await hanging.read())[1] == b"first last word"
        assert hanging.error
        assert hanging.error.type == "DeadlineExceeded"
        assert await runtime.exit() == 1


async def test_a_deadline_ends_only_its_invocation() -> None:
    async with many(2, timeout=1.2) as runtime:
        short, _ = await runtime.start("/hang")
        runtime.timeout = 60
        long, gate = await runtime.start("/two")
        await short.read()
        await gate.open("between")

        assert short.error
        assert short.error.type == "DeadlineExceeded"
        assert split(await long.read())[1] == b"one two"
        await runtime.polls(2)


async def test_sigterm_reports_every_invocation() -> None:
    async with many(4) as runtime:
        streams = [(await runtime.start("/hang-later"))[0] for _ in range(2)]
        for stream in streams:
            await stream.begun.wait()
        silent, gate = await runtime.start("/seen")
        await gate.reached("before")
        runtime.process.send_signal(signal.SIGTERM)

        assert {split(await stream.read())[1] for stream in streams} == {b"first last word"}
        await silent.read()
        assert [stream.error and stream.error.type for stream in (*streams, silent)] == ["Stopped"] * 3
        assert await runtime.exit() == 0


async def test_a_failed_request_for_an_event_ends_the_process_after_the_streams() -> None:
    async with many(3) as runtime:
        stream, gate = await runtime.start("/two")
        await gate.reached("between")
        runtime.api.at_once = 1  # the next request is refused
        short, _ = await runtime.start("/cookies")
        await short.read()
        await until(lambda: runtime.api.leaving)
        running = runtime.process.returncode is None
        await gate.open("between")

        assert running
        assert split(await stream.read())[1] == b"one two"
        assert stream.error is None
        assert await runtime.exit() == 1
        assert "Runtime.ApiError" in runtime.output


async def test_no_events_are_requested_while_memory_is_short() -> None:
    async with many(3, AWS_LAMBDA_FUNCTION_MEMORY_SIZE="80") as runtime:
        holding, gate = await runtime.start("/hold")
        await holding.begun.wait()
        short, _ = await runtime.start("/cookies")
        await short.read()
        await until(lambda: runtime.api.polls == 1)
        last, _ = await runtime.start("/cookies")
        await last.read()
        await until(lambda: runtime.api.running == 0)
        paused = runtime.api.polls
        await gate.open("held")
        await holding.read()

        assert paused == 0
        await runtime.polls(3)
        runtime.process.terminate()
        await runtime.exit()
        assert "It requests no events above 64 MB." in runtime.output


async def test_a_process_short_of_memory_still_runs_one_invocation_at_a_time() -> None:
    async with many(2, AWS_LAMBDA_FUNCTION_MEMORY_SIZE="1", at_first=1) as runtime:
        for _ in range(3):
            one, _ = await runtime.start("/cookies")
            await one.read()
            await runtime.polls(1)


async def test_lines_of_libraries_are_json_with_the_ids_of_their_invocation() -> None:
    async with many(2) as runtime:
        streams = [await runtime.start("/warn") for _ in range(2)]
        for _, gate in streams:
            await gate.reached("between")
        for stream, gate in reversed(streams):
            await gate.open("between")
            await stream.read()
        runtime.process.terminate()
        await runtime.exit()

    lines = [(line["logger"], line["message"], line["requestId"]) for line in runtime.lines()]
    first, second = (stream.request_id for stream, _ in streams)
    assert lines[2:] == [("library", "in a thread", second), ("library", "in a thread", first)]
    assert sorted(lines[:2]) == sorted([("library", "before", first), ("library", "before", second)])


async def test_warnings_are_json_with_the_id_of_their_invocation() -> None:
    async with many(2) as runtime:
        stream, _ = await runtime.start("/deprecate")
        await stream.read()
        runtime.process.terminate()
        await runtime.exit()

    (line,) = runtime.lines()
    assert (line["logger"], line["level"], line["requestId"]) == ("py.warnings", "WARNING", stream.request_id)
    assert "UserWarning: too old" in line["message"]


async def test_log_lines_and_metrics_carry_the_ids_of_their_request() -> None:
    async with many(8, handler="observed.app") as runtime:
        streams = [await runtime.start(f"/{index}") for index in range(8)]
        for _, gate in streams:
            await gate.reached("between")
        for stream, gate in reversed(streams):
            await gate.open("between")
            await stream.read()
        runtime.process.terminate()
        await runtime.exit()

    ids = {stream.request_id: str(index) for index, (stream, _) in enumerate(streams)}
    lines = runtime.lines()
    for kind in ("working", "Request"):
        found = {line["request_id"]: line for line in lines if line.get("message") == kind}
        assert {name: line["agent_name"] for name, line in found.items()} == ids
        assert all(name.replace("-", "")[:24] in line["xray_trace_id"] for name, line in found.items())
    metrics = [line for line in lines if "_aws" in line]
    assert {line["request_id"]: line["agent_name"] for line in metrics} == ids
    assert {line["request_id"]: line["Turns"] for line in metrics} == {name: [float(of)] for name, of in ids.items()}
    assert sum("ColdStart" in line for line in metrics) == 1
    assert sum(line["cold_start"] for line in metrics) == 1


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
@pytest.mark.parametrize("name", ["STINT_CONCURRENCY", "AWS_LAMBDA_MAX_CONCURRENCY", "STREAM_ROUTE_TIMEOUT_SECONDS"])
async def test_a_malformed_setting_is_an_init_error_with_its_name(service: Start, name: str, value: str) -> None:
    if name.startswith("STREAM"):
        value = f"{value} seconds"
    function = await service(environment={name: value})

    _, invocation = await function.call(proxy_event())

    assert invocation.error
    assert invocation.error.type == "InvalidConfiguration"
    assert invocation.error.message.startswith(f"{name} is {value!r}. Set it to a ")


async def test_lambdas_limit_is_the_default_and_the_most() -> None:
    async with many(2, STINT_CONCURRENCY="", AWS_LAMBDA_MAX_CONCURRENCY="2"):
        pass
    async with many(2, STINT_CONCURRENCY="8", AWS_LAMBDA_MAX_CONCURRENCY="2"):
        pass


async def test_one_event_at_a_time_is_the_default() -> None:
    async with many(2, STINT_CONCURRENCY="", at_first=1) as runtime:
        stream, gate = await runtime.start("/two")
        await gate.reached("between")
        requested = runtime.api.polls
        await gate.open("between")
        await stream.read()

        assert requested == 0
        await runtime.polls(1)
