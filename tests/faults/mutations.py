"""Remove one protection from loss at a time: `make test-fault-mutations`."""

import sys

from tests.mutations import CORE, Mutation, run_mutations

TESTS = "tests/faults/test_faults.py"


def failing(kind: str, scenario: str) -> str:
    """Return the test of a scenario that must fail."""
    return f"{TESTS}::test_{kind}[{scenario}]"


MUTATIONS = [
    Mutation(
        "a turn whose approved calls may have been sent is not continued",
        f"{CORE}/services/turns/resume.py",
        "    if any(approval.approve for approval in last.approvals or ()):",
        "    if False:",
        "tests/services/turns/test_approved_calls.py -k dies_after_the_approval",
    ),
    Mutation(
        "the model is told of approved calls that may have been sent",
        f"{CORE}/services/turns/history.py",
        "        if record.approvals:",
        "        if False:",
        "tests/services/turns/test_approved_calls.py -k dies_after_the_approval",
    ),
    Mutation(
        "the worker repeats a task whose webhook was not sent",
        f"{CORE}/services/background/worker.py",
        "stored.status, raises=True)",
        "stored.status)",
        "tests/services/webhooks/test_webhook_events.py -k refused",
    ),
    Mutation(
        "a step is stored before it is announced",
        f"{CORE}/loop/run.py",
        "        await self.log.append(step, ending, details)",
        '        __import__("asyncio").ensure_future(self.log.append(step, ending, details))',
        failing("deaths", "turn-with-server-tools"),
    ),
    Mutation(
        "a compaction is stored, so that the next turn does not pay for it again",
        f"{CORE}/loop/compaction.py",
        "    await run.log.append_compaction(step, compaction)\n",
        "",
        "tests/services/turns/test_compacted_sessions.py -k dies_after",
    ),
    Mutation(
        "a turn that repeats a failed one keeps its compaction",
        f"{CORE}/services/turns/session_transcript.py",
        "add = add_turn if self.turn_id != without else add_compactions",
        "add = add_turn if self.turn_id != without else lambda *_: None",
        "tests/services/turns/test_compacted_sessions.py -k retried",
    ),
    Mutation(
        "a write recognizes its own record by a nonce",
        f"{CORE}/store/table.py",
        "            if found != sent:",
        "            if True:",
        failing("errors", "turn-with-server-tools"),
    ),
    Mutation(
        "the ending of a response is stored before the items of its conversation",
        f"{CORE}/services/responses/response_log.py",
        "        if self.store is not None:\n            place =",
        "        if items and self.conversation is not None:\n            await self.conversation.put_items(items)\n"
        "        if self.store is not None:\n            place =",
        failing("deaths", "response-in-conversation"),
    ),
    Mutation(
        "a lease that has lapsed is free",
        f"{CORE}/store/lease.py",
        "and int(found[self.until_name]) > time.time() * 1000",
        "and int(found[self.until_name]) > 0",
        failing("deaths", "turn"),
    ),
    Mutation(
        "a lease that is not renewed for its whole time lapses, although the clock of its holder was ahead",
        f"{CORE}/store/lease.py",
        "    return now - seen[key][1] >= seconds",
        "    return False",
        "tests/services/recovery/test_turns_with_wrong_clocks.py"
        "::test_a_session_whose_process_died_with_a_fast_clock_takes_a_turn_after_the_lease_time",
    ),
    Mutation(
        "a reader with a slow clock counts from the last renewal of a lease",
        f"{CORE}/store/lease.py",
        "(until, since if known == until else now)",
        "(until, since)",
        "tests/services/recovery/test_turns_with_wrong_clocks.py"
        "::test_a_process_with_a_slow_clock_never_takes_the_session_of_a_turn_that_runs",
    ),
    Mutation(
        "the task of a deletion is sent before its mark",
        f"{CORE}/services/deletions.py",
        "        await self.send(task.before_mark())\n        await mark()",
        "        await mark()",
        failing("deaths", "delete-session"),
    ),
    Mutation(
        "the task of a file is sent before the file is stored in a vector store",
        f"{CORE}/services/knowledge/insertions.py",
        "            await self.tasks.announce(store_id, sorted(changed - announced))",
        "            pass",
        failing("deaths", "ingest-file"),
    ),
    Mutation(
        "the task for the object of a file is sent before the object is stored",
        f"{CORE}/store/files.py",
        "            await before_object()",
        "            pass",
        "tests/services/recovery/test_dead_creations.py::test_a_file_whose_creation_dies_exists_or_leaves_nothing",
    ),
    Mutation(
        "the records of an agent are written together",
        f"{CORE}/store/agents.py",
        "write([Put(config), Put(entry), *index_of(tenant, agent, pairs)])",
        "write([Put(config)])\n            await self._make_transactions().write([Put(entry)])",
        "tests/services/recovery/test_dead_creations.py::test_an_agent_whose_creation_dies_exists_or_leaves_nothing[small]",
    ),
    Mutation(
        "a response whose process died has failed",
        f"{CORE}/domain/openai/stored_responses.py",
        "self.ending is None and time.time() > ends",
        "self.ending is None and False",
        failing("deaths", "response"),
    ),
    Mutation(
        "calls that may have taken effect are not sent again",
        f"{CORE}/services/background/resume.py",
        "return remaining_calls(run, answer.tool_calls, answered, early, refused=details.refused or ())",
        "return RunTools([call for call in answer.tool_calls if call.call_id not in answered], known={})",
        failing("deaths", "background"),
    ),
    Mutation(
        "a background response is queued before it is announced",
        f"{CORE}/store/messaging.py",
        "        await asyncio.to_thread(self._send, task)",
        "        return",
        failing("deaths", "background"),
    ),
    Mutation(
        "a retry queues a background response whose request died before its message",
        f"{CORE}/services/responses/response_retries.py",
        "        await self.reader.recovery.queue_for_retry(stored)",
        "        pass",
        "tests/services/background/test_lost_messages.py::test_a_retry_queues_a_response_that_died_before_its_message",
    ),
    Mutation(
        "the rest of a batch is written",
        f"{CORE}/store/table.py",
        '(await self._call("BatchWriteItem", RequestItems=left)).get("UnprocessedItems")',
        '(await self._call("BatchWriteItem", RequestItems=left)).get("Unknown")',
        failing("errors", "create-conversation"),
    ),
    Mutation(
        "a chat completion is stored before its answer ends",
        f"{CORE}/services/inference/chat/chat.py",
        "await self.make_stored().save(run.completion.request, run.completion.whole())",
        '__import__("asyncio").get_running_loop().call_later(0.1, __import__("asyncio").ensure_future, '
        "self.make_stored().save(run.completion.request, run.completion.whole()))",
        failing("deaths", "stored-chat"),
    ),
    Mutation(
        "one run claims a waiting message",
        f"{CORE}/store/waiting_line.py",
        'assign | {"nonce": nonce}, condition, values)',
        'assign | {"nonce": nonce}, OPEN)',
        failing("deaths", "enqueue"),
    ),
    Mutation(
        "a cancellation is announced only if it is stored",
        f"{CORE}/services/turns/turn_run.py",
        "        if isinstance(error, Cancelled):\n            error = problem",
        "        if False:\n            error = problem",
        failing("errors", "cancel-turn"),
    ),
    Mutation(
        "heartbeats are read again after a read that failed",
        f"{CORE}/spending/stop_monitor.py",
        "            except StoreUnavailable as error:\n",
        "            except StoreUnavailable as error:\n                return\n",
        failing("errors", "heartbeat"),
    ),
    Mutation(
        "a seal expires",
        f"{CORE}/store/records.py",
        'return {"sealed_at": now, "expires_at": now + SEAL_SECONDS}',
        'return {"sealed_at": now}',
        failing("deaths", "turn"),
    ),
    Mutation(
        "the user's message stays when its turn failed",
        f"{CORE}/services/turns/history.py",
        "    refused = error is not None and (error.type == InvalidRequest.type or error.code == ShieldFailed.code)\n"
        "    return refused and all(",
        "    return error is not None and all(",
        failing("errors", "turn-overloaded"),
    ),
    Mutation(
        "a session is free once its turn has ended, although the release of its lease failed",
        f"{CORE}/store/session_leases.py",
        "        if index is None or before == UNKNOWN or index < before:",
        "        if True:",
        failing("errors", "turn"),
    ),
    Mutation(
        "of two changes of a session at once one is refused",
        f"{CORE}/store/sessions.py",
        'condition=f"{LIVE} AND {unchanged}"',
        'condition=f"{LIVE} AND ({unchanged} OR attribute_exists(pk))"',
        "tests/store/test_metadata_index.py -k two_changes_at_once",
    ),
    Mutation(
        "a deletion removes what a session has in the index of metadata",
        f"{CORE}/store/deletion.py",
        '        if "settings" in session:',
        "        if False:",
        "tests/store/test_metadata_index.py -k deletion_that_dies",
    ),
    Mutation(
        "money whose return is throttled is subtracted from the next reservation",
        f"{CORE}/spending/blocks.py",
        "        self.unsettled[key] += amount",
        "        return",
        "tests/store/test_budget_counters.py -k whose_return_is_throttled",
    ),
    Mutation(
        "a bank has the id of its request's idempotency key",
        f"{CORE}/october_2024/banks.py",
        "name=request.name, url=url), next_object_id()",
        'name=request.name, url=url), __import__("stint.domain.ids").domain.ids.new_id()',
        failing("deaths", "create-october-bank"),
    ),
]


if __name__ == "__main__":
    sys.exit(run_mutations(MUTATIONS, sys.argv[1:]))
