"""A scripted MCP server on its pipes: one JSON text a line, protocol 2025-11-25."""

import json
import os
import sys
import threading

LOCK = threading.Lock()


def say(message):
    with LOCK:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def tool(name, description, hints=None, **properties):
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": hints or {}}


def tools():
    with open("words.txt", encoding="utf-8") as words:
        about = words.read().strip()
    text = {"type": "string"}
    return [
        tool("echo", about, {"readOnlyHint": True}, text=text),
        tool("store", "Stores the text in stored.txt.", None, text=text),
        tool("token", "Says the server's own token.", {"readOnlyHint": True}),
        tool("pid", "Says the number of the process.", {"readOnlyHint": True}),
        tool("fetch", "Would fetch the address.", {"readOnlyHint": True}, url=text),
        tool("wait", "Answers once the file go.txt is there.", {"readOnlyHint": True}),
        tool("exit", "Ends the server in the middle of the call.", {"readOnlyHint": True}),
    ]


def call(name, arguments):
    if name == "echo":
        return arguments.get("text", "")
    if name == "store":
        with open("stored.txt", "w", encoding="utf-8") as stored:
            stored.write(arguments.get("text", ""))
        return "stored"
    if name == "token":
        return "the token is " + os.environ.get("TOKEN", "not set")
    if name == "pid":
        return str(os.getpid())
    if name == "wait":
        while not os.path.exists("go.txt"):
            threading.Event().wait(0.02)
        return "went on in %d" % os.getpid()
    if name == "exit":
        os._exit(3)
    return "fetched"


def answer(message):
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "scripted", "version": "1.0"},
        }
    elif method == "tools/list":
        threading.Event().wait(float(os.environ.get("LIST_SECONDS", "0")))
        result = {"tools": tools()}
    elif method == "tools/call":
        params = message["params"]
        text = call(params["name"], params.get("arguments") or {})
        result = {"content": [{"type": "text", "text": text}]}
    elif method == "ping":
        result = {}
    else:
        return say({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no such method"}})
    return say({"jsonrpc": "2.0", "id": number, "result": result})


for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("id") is not None and "method" in asked:
        threading.Thread(target=answer, args=(asked,), daemon=True).start()
