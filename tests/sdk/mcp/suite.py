"""The official Python client of the Model Context Protocol against a running daemon, in both generations.

suite.py URL KEY PROGRAM ARGUMENTS...   (what starts the server on standard input)
"""

import asyncio
import os
import sys

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

URL, KEY, PROGRAM, *ARGUMENTS = sys.argv[1:]
PASSED = 0
FAILED = 0


async def check(name, run):
    global PASSED, FAILED
    try:
        await run()
        PASSED += 1
        print(f"ok    {name}")
    except BaseException as error:  # A failed case must not end the suite.
        FAILED += 1
        print(f"FAIL  {name}: {type(error).__name__}: {error}")


def http_client():
    return httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=60, trust_env=False)


def over_http():
    return streamable_http_client(URL, http_client=http_client())


def over_stdio():
    return StdioServerParameters(command=PROGRAM, args=ARGUMENTS, env=dict(os.environ))


async def common(name, client):
    async def tools():
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "ask_agent" in names and "search_knowledge_base" in names, names

    async def call():
        result = await client.call_tool("calculate", {"expression": "6*7"})
        assert (result.content[0].text, result.is_error) == ("42", False), result

    async def unknown():
        try:
            await client.call_tool("no_such_tool", {})
        except MCPError:
            return
        raise AssertionError("it was called")

    async def documents():
        uri = "kb:///hours.md"
        for _ in range(200):
            resources = (await client.list_resources(cache_mode="bypass")).resources
            if any(str(resource.uri) == uri for resource in resources):
                break
            await asyncio.sleep(0.1)
        contents = (await client.read_resource(uri)).contents
        assert "open from 8 to 16" in contents[0].text, contents

    async def prompts():
        assert isinstance((await client.list_prompts()).prompts, list)

    for case in (tools, call, unknown, documents, prompts):
        await check(f"{name}: {case.__name__}", case)


async def agent(name, client):
    async def answers():
        told = []

        async def progress(_done, _total, message):
            told.append(message)

        result = await client.call_tool(
            "ask_agent", {"question": "Say hello."}, progress_callback=progress
        )
        assert result.content[0].text and "answering" in told, (result, told)

    async def approves():
        result = await client.call_tool("write_file", {"path": f"{name[-6:]}.md", "content": "x"})
        assert result.is_error is False, result

    async def approves_the_agent():
        result = await client.call_tool("ask_agent", {"question": "save a note"})
        assert result.content[0].text.startswith("The tool said"), result
        assert "approvals" not in result.structured_content, result

    await check(f"{name}: the agent answers", answers)
    await check(f"{name}: a person approves what the agent does", approves_the_agent)
    await check(f"{name}: a person approves a call", approves)


async def accept(_context, _params):
    return ElicitResult(action="accept", content={"approve": True})


async def main():
    for mode in ("legacy", "2026-07-28"):
        async with Client(over_http(), mode=mode, elicitation_callback=accept) as client:
            await common(f"HTTP {mode}", client)
            await agent(f"HTTP {mode}", client)
        async with Client(over_stdio(), mode=mode) as client:
            await common(f"standard input {mode}", client)

    async def stranger():
        bare = streamable_http_client(URL, http_client=httpx2.AsyncClient(trust_env=False))
        try:
            async with Client(bare, mode="legacy"):
                pass
        except BaseException:
            return
        raise AssertionError("it connected")

    await check("HTTP: without a key nobody connects", stranger)


asyncio.run(main())
print(f"{PASSED} passed, {FAILED} failed")
sys.exit(1 if FAILED else 0)
