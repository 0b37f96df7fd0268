"""Examples of request bodies, for the OpenAPI document.

The key is the name of the route's function, which is the operation's id in the document; an operation without an entry
has no examples.
"""

from typing import Any

from stint.http.routes.inspection import BUILT_EMBEDDING_MODEL as EMBEDDING_MODEL
from stint.http.routes.inspection import BUILT_MODEL as MODEL

AGENT_ID = "01990000-0001-7000-8000-00000000000a"
CALL_ID = "call_1"
FILE_ID = "file-01a202309738700096f0a3d1a6c1f2aa"
PART_ID = "part_..."
RESPONSE_ID = "resp_..."
SESSION_ID = "01990000-0001-7000-8000-00000000000b"
TURN_ID = "01990000-0001-7000-8000-00000000000c"
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Name of the city."}},
    "required": ["city"],
}
CLIENT_TOOL = {
    "name": "get_weather",
    "description": "Returns the weather in a city.",
    "parameters": [{"name": "city", "parameter_type": "string", "description": "Name of the city.", "required": True}],
}
FUNCTION = {"type": "function", "name": "get_weather", "description": "Returns the weather.", "parameters": WEATHER}
MESSAGE = {"type": "message", "role": "user", "content": "What is the weather in Oslo?"}
FRONTEND_TOOL = {
    "name": "get_weather",
    "description": "Returns the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
QUESTION = {"role": "user", "content": "What is the weather in Oslo?"}
SESSION_QUESTION = {"role": "user", "content": [{"type": "input_text", "text": "What is the weather in Oslo?"}]}

EXAMPLES: dict[str, dict[str, Any]] = {
    "create_key": {
        "A key for an application": {
            "name": "billing",
            "scopes": ["use"],
            "models": ["openai/*"],
            "budgets": {"requests_per_minute": 60, "dollars_per_month": 50},
        }
    },
    "stop_work": {
        "A session": {"kind": "session", "id": SESSION_ID},
        "A whole tenant": {"kind": "tenant"},
    },
    "rotate_key": {"An hour in which both secrets are valid": {"overlap_seconds": 3600}},
    "create_webhook_endpoint": {
        "An endpoint for failures": {
            "name": "shop",
            "url": "https://shop.example.com/webhooks",
            "event_types": ["response.failed", "agent.session.turn.failed"],
        }
    },
    "update_webhook_endpoint": {"Another URL": {"url": "https://shop.example.com/events"}},
    "rotate_webhook_secret": {"A day in which both secrets sign": {"keep_old_secret_active_for_24_hours": True}},
    "test_webhook_endpoint": {"A sample event": {"event_type": "response.failed"}},
    "send_mcp_message": {"The tools": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}},
    "send_agent_mcp_message": {"The tool": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}},
    "call_agent": {
        "A message": {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "What time is it?"}]}},
        }
    },
    "create_agent": {
        "An agent with a client tool": {
            "agent_config": {"model": MODEL, "instructions": "Answer briefly.", "client_tools": [CLIENT_TOOL]}
        },
        "An agent with server tools": {
            "agent_config": {"model": MODEL, "instructions": "Answer briefly.", "toolgroups": ["builtin::websearch"]}
        },
    },
    "create_session": {
        "A session": {"session_name": "first"},
        "A session with a budget": {"session_name": "second", "budget": {"max_dollars": 0.5, "max_tokens": 200_000}},
    },
    "create_turn": {"A streamed turn": {"messages": [QUESTION], "stream": True}},
    "resume_turn": {
        "The result of a waiting tool call": {
            "tool_responses": [{"call_id": CALL_ID, "tool_name": "get_weather", "content": "sunny"}],
            "stream": True,
        }
    },
    "run_ag_ui_agent": {
        "A run with a frontend tool": {
            "threadId": "1",
            "runId": "1",
            "messages": [{"id": "1", "role": "user", "content": "What is the weather in Oslo?"}],
            "tools": [FRONTEND_TOOL],
        },
    },
    "create_agent_session": {
        "A session of an agent, with the events of its first turn": {
            "agent_id": AGENT_ID,
            "environment": {"type": "none"},
            "input": "What is the boiling point of water?",
            "stream": True,
        },
        "A session with an agent of its own": {
            "agent": {"model": MODEL, "instructions": "Answer briefly.", "tools": [FUNCTION]},
            "environment": {"type": "none"},
            "input": "What is the weather in Oslo?",
            "budget": {"max_tokens": 200_000},
        },
    },
    "update_agent_session": {"Another model for later turns": {"agent": {"model": MODEL}}},
    "post_session_events": {
        "A message": {"events": [{"type": "agent.session.input.message", "input": [SESSION_QUESTION]}]},
        "The result of a function call": {
            "events": [
                {
                    "type": "agent.session.input.tool_result",
                    "turn_id": TURN_ID,
                    "call_id": CALL_ID,
                    "success": True,
                    "output": "sunny",
                }
            ]
        },
        "A cancellation": {"events": [{"type": "agent.session.input.cancel"}]},
    },
    "create_automation": {
        "A new session on each weekday": {
            "type": "periodic",
            "name": "Morning report",
            "expression": "0 9 * * 1-5",
            "timezone": "Europe/Oslo",
            "target": {
                "type": "new_session",
                "environment": {"type": "none"},
                "agent_id": AGENT_ID,
                "input": [SESSION_QUESTION],
            },
        },
        "A message to a session, once": {
            "type": "once",
            "name": "Reminder",
            "run_at": 4_000_000_000,
            "target": {
                "type": "existing_session",
                "session_id": SESSION_ID,
                "instructions": "What is the weather in Oslo now?",
            },
        },
    },
    "update_automation": {"Another time": {"expression": "30 8 * * 1-5"}},
    "create_vault": {"A vault": {"name": "Ann", "metadata": {"team": "sales"}}},
    "update_vault": {"Other metadata": {"metadata": {"team": "support"}}},
    "create_vault_credential": {
        "A token": {
            "name": "docs",
            "auth": {
                "type": "static_bearer",
                "token": "the-token-of-ann",
                "mcp_server_url": "https://mcp.example.com/mcp",
            },
        }
    },
    "update_vault_credential": {"Another token": {"auth": {"type": "static_bearer", "token": "a-newer-token"}}},
    "create_response": {
        "A text": {"model": MODEL, "input": "What is the boiling point of water?"},
        "A client function, streamed": {"model": MODEL, "input": [MESSAGE], "tools": [FUNCTION], "stream": True},
        "An MCP server": {
            "model": MODEL,
            "input": "What does the documentation say about streams?",
            "tools": [
                {
                    "type": "mcp",
                    "server_label": "docs",
                    "server_url": "https://mcp.example.com/mcp",
                    "require_approval": "never",
                }
            ],
        },
        "In the background": {"model": MODEL, "input": "Write a long report.", "background": True},
    },
    "compact_response": {"Compact the context of a response": {"model": MODEL, "previous_response_id": RESPONSE_ID}},
    "count_input_tokens": {
        "Count the tokens of a text": {"model": MODEL, "input": "What is the boiling point of water?"}
    },
    "create_conversation": {
        "A conversation with its first item": {"items": [MESSAGE], "metadata": {"topic": "weather"}},
        "A conversation with a budget": {"budget": {"max_dollars": 0.5, "max_tokens": 200_000}},
    },
    "update_conversation": {"Other metadata": {"metadata": {"topic": "travel"}}},
    "create_conversation_items": {"An item": {"items": [MESSAGE]}},
    "create_chat_completion": {
        "A chat": {"model": MODEL, "messages": [QUESTION]},
        "A streamed chat": {"model": MODEL, "messages": [QUESTION], "stream": True},
        "A stored chat": {"model": MODEL, "messages": [QUESTION], "store": True, "metadata": {"topic": "weather"}},
    },
    "update_chat_completion": {"Other metadata": {"metadata": {"topic": "travel"}}},
    "create_completion": {
        "A completion": {"model": MODEL, "prompt": "Complete the sentence: Roses are red,", "max_tokens": 50},
    },
    "answer_chat": {
        "A chat": {"model_id": MODEL, "messages": [QUESTION]},
        "A tool of the client, streamed": {
            "model_id": MODEL,
            "messages": [QUESTION],
            "tools": [{"tool_name": "get_weather", "parameters": {"city": {"param_type": "string"}}}],
            "stream": True,
        },
    },
    "answer_chats": {"Two chats": {"model_id": MODEL, "messages_batch": [[QUESTION], [QUESTION]]}},
    "complete_content": {"A completion": {"model_id": MODEL, "content": "Complete the sentence: Roses are red,"}},
    "complete_contents": {"Two completions": {"model_id": MODEL, "content_batch": ["One, two,", "A, B,"]}},
    "create_embeddings": {"Two texts": {"model": EMBEDDING_MODEL, "input": ["Llamas hum.", "Alpacas are smaller."]}},
    "embed_contents": {"A query": {"model_id": EMBEDDING_MODEL, "contents": ["Do llamas hum?"], "task_type": "query"}},
    "register_model": {
        "An alias of a model": {"model_id": "fast", "provider_id": "openai", "provider_model_id": "gpt-4.1-mini"}
    },
    "register_toolgroup": {
        "An MCP server": {
            "toolgroup_id": "mcp::docs",
            "provider_id": "model-context-protocol",
            "mcp_endpoint": {"uri": "https://mcp.example.com/mcp"},
        },
        "A Lambda function": {
            "toolgroup_id": "weather",
            "provider_id": "lambda-function",
            "args": {"tools": [{"name": "get_weather", "function": "get-weather", "parameters": WEATHER}]},
        },
    },
    "invoke_tool": {"A search": {"tool_name": "web_search", "kwargs": {"query": "boiling point of water"}}},
    "create_upload": {
        "A file of 10 MB": {
            "bytes": 10_000_000,
            "filename": "llamas.txt",
            "mime_type": "text/plain",
            "purpose": "assistants",
        }
    },
    "complete_upload": {"The parts, in their order": {"part_ids": [PART_ID]}},
    "create_container": {"A container with a file": {"name": "Analysis", "file_ids": [FILE_ID]}},
    "add_container_file": {"A file": {"file_id": FILE_ID}},
    "create_vector_store": {"A store with a file": {"name": "Llamas", "file_ids": [FILE_ID]}},
    "update_vector_store": {"Another name": {"name": "Llamas and alpacas"}},
    "search_vector_store": {
        "A search": {"query": "Do llamas hum?"},
        "Files of a year": {
            "query": "Do llamas hum?",
            "filters": {"type": "gte", "key": "year", "value": 2020},
            "max_num_results": 5,
        },
    },
    "create_vector_store_file": {"A file with attributes": {"file_id": FILE_ID, "attributes": {"year": 2020}}},
    "update_vector_store_file": {"Other attributes": {"attributes": {"year": 2021}}},
    "create_file_batch": {"A file": {"file_ids": [FILE_ID], "attributes": {"year": 2020}}},
    "register_vector_db": {"A vector db": {"vector_db_id": "llamas", "embedding_model": EMBEDDING_MODEL}},
    "insert_chunks": {
        "A chunk": {
            "vector_db_id": "llamas",
            "chunks": [{"content": "Llamas hum.", "metadata": {"document_id": "sounds"}}],
        }
    },
    "query_chunks": {"A query": {"vector_db_id": "llamas", "query": "Do llamas hum?", "params": {"max_chunks": 2}}},
    "insert_documents": {
        "A text": {
            "documents": [{"document_id": "sounds", "content": "Llamas hum.", "mime_type": "text/plain"}],
            "vector_db_id": "llamas",
            "chunk_size_in_tokens": 256,
        }
    },
    "query_context": {
        "A hybrid search": {
            "content": "Do llamas hum?",
            "vector_db_ids": ["llamas"],
            "query_config": {"mode": "hybrid", "max_chunks": 3},
        }
    },
    "register_shield": {
        "A deny list": {
            "shield_id": "secrets",
            "provider_id": "deny-list",
            "params": {"phrases": ["the launch code"]},
        }
    },
    "run_shield": {
        "Check a message": {
            "shield_id": "secrets",
            "messages": [{"role": "user", "content": "What is the launch code?"}],
            "params": {},
        }
    },
}
"""The summary and body of each example, by operation."""


def add_examples(described: dict[str, Any]) -> None:
    """Add the examples to an OpenAPI document."""
    for item in described["paths"].values():
        for operation in item.values():
            found = EXAMPLES.get(operation["operationId"], {})
            if found:
                content = operation["requestBody"]["content"]["application/json"]
                content["examples"] = {
                    f"example{number}": {"summary": summary, "value": value}
                    for number, (summary, value) in enumerate(found.items(), 1)
                }
